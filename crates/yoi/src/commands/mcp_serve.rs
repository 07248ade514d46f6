//! `yoi mcp serve`: the tools of a pod for programs that speak the Model Context Protocol. Standard output is theirs
//! alone, so that everything for people goes to standard error.

use crate::cli::McpServeArgs;
use crate::commands::host_process::running;
use crate::commands::person::only_a_person;
use crate::commands::pod_names;
use crate::commands::start::SELF;
use crate::report::messages;
use crate::socket::block_on;
use host::compose::model::OFFLINE;
use host::env::Env;
use host::exit::{Exit, Failure};
use host::pods::{Pods, make_private};
use host::project::Project;
use serve::{DoorWaits, HttpDoor, McpServer, PodCalls, PodStart, ServeEnd, ToolFilter};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{Command, Stdio};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// What the journal calls this client.
const COMMAND: &str = "yoi mcp serve";

/// Random bytes of a token.
const TOKEN: usize = 32;

pub(crate) fn run(args: &McpServeArgs, env: &Env) -> Result<Exit, Failure> {
    only_a_person("serve the tools of a pod")?;
    if let Some(address) = args.http.filter(|address| !address.ip().is_loopback()) {
        let text = format!("{address} is not an address of this machine alone");
        return Err(Failure::new(Exit::Usage, text).help("use 127.0.0.1:PORT or [::1]:PORT"));
    }
    let filter = ToolFilter::new(&args.tools)
        .map_err(|why| Failure::new(Exit::Usage, format!("--tools: {why}")))?;
    let pods = Pods::of(env)?;
    let (name, is_own) = match &args.name {
        Some(name) => (pods.find(name)?, false),
        None => (pod_names::of_door(&pods, &Project::around(env), env)?, true),
    };
    let dir = pods.dir(&name);
    let start = starter(&name, &dir, is_own, env);
    start().map_err(|why| Failure::new(Exit::Unavailable, why))?;
    let server = Arc::new(McpServer::new(PodCalls {
        dir,
        name,
        client: COMMAND.to_owned(),
        filter,
        waits: DoorWaits::default(),
        start: Some(start),
    }));
    block_on(served(args.http, &server, is_own, env))?
}

async fn served(
    http: Option<SocketAddr>,
    server: &Arc<McpServer>,
    is_own: bool,
    env: &Env,
) -> Result<Exit, Failure> {
    let stop = CancellationToken::new();
    // As long as it is followed, no other server takes the pod for unused.
    let mut attending = pin!(server.pod().attend());
    let doing = async {
        match http {
            Some(address) => on_port(address, server, &stop, env).await,
            None => on_streams(server, &stop).await,
        }
    };
    let signals = async {
        signalled().await;
        stop.cancel();
        std::future::pending::<()>().await;
    };
    let done = tokio::select! {
        done = doing => done,
        () = signals => Ok(Exit::Done),
        () = &mut attending => Ok(Exit::Done),
    };
    if is_own {
        tokio::select! {
            () = server.pod().leave() => {}
            () = &mut attending => {}
        }
    }
    done
}

async fn on_streams(server: &Arc<McpServer>, stop: &CancellationToken) -> Result<Exit, Failure> {
    let name = &server.pod().name;
    messages(false).say(&format!(
        "the tools of {name} are served on standard input and output; `yoi log {name}` shows the calls"
    ));
    let input = BufReader::new(io::stdin());
    let ended = serve::serve(Arc::clone(server), input, io::stdout(), stop).await;
    let ended = ended.map_err(|why| unavailable("standard input and output", &why))?;
    Ok(match ended {
        ServeEnd::Input | ServeEnd::Stopped | ServeEnd::Output => Exit::Done,
    })
}

async fn on_port(
    address: SocketAddr,
    server: &Arc<McpServer>,
    stop: &CancellationToken,
    env: &Env,
) -> Result<Exit, Failure> {
    let listener = TcpListener::bind(address).await;
    let listener = listener.map_err(|why| unavailable(&address.to_string(), &why))?;
    let address = listener
        .local_addr()
        .map_err(|why| unavailable(&address.to_string(), &why))?;
    let token = TokenFile::new(&server.pod().name, address.port(), env)?;
    let name = &server.pod().name;
    let path = token.path.display();
    messages(false).say(&format!(
        "the tools of {name} are served at http://{address}/mcp and /tools; the token is in {path}"
    ));
    let door = HttpDoor::new(Arc::clone(server), &token.text, address);
    door.serve(listener, stop)
        .await
        .map_err(|why| unavailable(&address.to_string(), &why))?;
    Ok(Exit::Done)
}

fn unavailable(what: &str, why: &io::Error) -> Failure {
    Failure::new(
        Exit::Unavailable,
        format!("{what}: {}", authority::explain(why)),
    )
}

/// Waits for a signal that ends the server.
async fn signalled() {
    let kinds = [
        SignalKind::terminate(),
        SignalKind::interrupt(),
        SignalKind::hangup(),
    ];
    let [Ok(mut term), Ok(mut interrupt), Ok(mut hangup)] = kinds.map(signal) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = term.recv() => {}
        _ = interrupt.recv() => {}
        _ = hangup.recv() => {}
    }
}

/// Starts the pod in a process of its own, which prints nothing here, unless it runs. One of this directory's own asks no
/// model, so that it needs no key.
fn starter(name: &str, dir: &Path, is_own: bool, env: &Env) -> PodStart {
    let name = name.to_owned();
    let dir = dir.to_owned();
    let cwd = env.cwd.clone();
    Arc::new(move || {
        if running(&dir).is_some() {
            return Ok(());
        }
        let mut command = Command::new(SELF);
        command.arg("start").arg(&name).arg("--quiet");
        if is_own {
            command.args(["--model", OFFLINE]);
        }
        let done = command
            .current_dir(&cwd)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .output()
            .map_err(|why| format!("the pod {name} cannot be started: {why}"))?;
        if done.status.success() || running(&dir).is_some() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&done.stderr);
        Err(format!("the pod {name} does not start: {}", said.trim()))
    })
}

/// A token for clients on a port, in a file that is removed with this value.
struct TokenFile {
    text: String,
    path: PathBuf,
}

impl TokenFile {
    fn new(name: &str, port: u16, env: &Env) -> Result<Self, Failure> {
        let dir = env.state_dir()?.join("tokens");
        make_private(&dir)?;
        let path = dir.join(format!("{name}-{port}"));
        let failed = |why: io::Error| host::pods::disk(&path, &why);
        let mut bytes = [0; TOKEN];
        let random = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
        random.map_err(failed)?;
        let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        // One that a killed server left is of no use to anybody.
        drop(fs::remove_file(&path));
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(failed)?;
        Ok(Self { text, path })
    }
}

impl Drop for TokenFile {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.path));
    }
}
