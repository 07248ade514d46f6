//! Nor can it move to a thread that outlives `install`.
use pod::feature::FeatureInstallContext;

fn install<'a>(ctx: &'a mut FeatureInstallContext<'a>) {
    std::thread::spawn(move || drop(ctx.tools()));
}

fn main() {}
