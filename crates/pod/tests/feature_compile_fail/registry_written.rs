//! Nothing but an install puts a tool into a registry.
use pod::feature::{RegisteredTool, ToolRegistry};

fn add(registry: &mut ToolRegistry, tool: RegisteredTool) {
    registry.by_name.insert(tool.definition.name.clone(), tool);
}

fn main() {}
