//! A PostgreSQL server for tests, on a free port, with databases of their own for those who ask.
#![allow(dead_code, reason = "not every test uses everything")]

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long to wait for something that must happen, however slow the machine is.
const LIMIT: Duration = Duration::from_secs(120);
/// Ends the server when its input ends, which it does with the process that runs the tests.
const UNTIL_INPUT_ENDS: &str = r#"directory=$1; shift; "$@" & server=$!
read line; kill -INT "$server"; wait "$server"; [ "$line" = keep ] || rm -rf "$directory""#;

/// A server.
pub struct PostgreSqlServer {
    directory: PathBuf,
    port: u16,
    user: Option<(u32, u32)>,
    /// Besides those of all tests.
    settings: Vec<String>,
    running: Option<Child>,
    databases: AtomicU32,
}

impl PostgreSqlServer {
    /// The one of all tests of a program. It ends with the program.
    pub fn shared() -> &'static PostgreSqlServer {
        static SERVER: OnceLock<PostgreSqlServer> = OnceLock::new();
        SERVER.get_or_init(PostgreSqlServer::start)
    }

    /// One for a test that stops it.
    pub fn start() -> PostgreSqlServer {
        let mut server = PostgreSqlServer::made();
        server.run();
        server
    }

    /// One that takes encrypted connections too, and shows this certificate.
    pub fn start_encrypted(certificate: &[u8], key: &[u8]) -> PostgreSqlServer {
        let mut server = PostgreSqlServer::made();
        server.settings.push("ssl=on".to_owned());
        for (setting, name, content) in
            [("ssl_cert_file", "server.pem", certificate), ("ssl_key_file", "server.key", key)]
        {
            let path = server.directory.join(name);
            std::fs::write(&path, content).expect("a file");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("it is ours");
            if let Some((user, group)) = server.user {
                std::os::unix::fs::chown(&path, Some(user), Some(group)).expect("root may do so");
            }
            server.settings.push(format!("{setting}={}", path.display()));
        }
        server.run();
        server
    }

    fn made() -> PostgreSqlServer {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("osmia-postgresql-{}-{number}", std::process::id()));
        std::fs::create_dir(&directory).expect("a new directory");
        std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o700)).expect("it is ours");
        // It refuses to run as root.
        let user = (number_of("-u", None) == Some(0)).then(|| {
            let of = |what| number_of(what, Some("postgres")).or_else(|| number_of(what, Some("nobody")));
            of("-u").zip(of("-g")).expect("a user to run it as")
        });
        if let Some((user, group)) = user {
            std::os::unix::fs::chown(&directory, Some(user), Some(group)).expect("root may do so");
        }
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port();
        let (settings, databases) = (Vec::new(), AtomicU32::new(0));
        let server = PostgreSqlServer { directory, port, user, settings, running: None, databases };
        // With an order of texts that is not that of their bytes.
        let order = ["--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en-US"];
        let mut make = server.command(program("initdb"));
        make.args(["--auth=trust", "--username=osmia", "--encoding=UTF8", "--no-sync"]).args(order);
        let made = make.arg(server.data()).output().expect("initdb starts");
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        server
    }

    /// Starts it again.
    pub fn run(&mut self) {
        let mut command = self.command("/bin/sh");
        command.args(["-c", UNTIL_INPUT_ENDS, "sh"]).arg(&self.directory).arg(program("postgres"));
        command.arg("-D").arg(self.data()).args(["-p", &self.port.to_string()]);
        for setting in ["listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off", "max_connections=200"] {
            command.args(["-c", setting]);
        }
        for setting in &self.settings {
            command.args(["-c", setting]);
        }
        let log = std::fs::File::create(self.directory.join("log")).expect("a file");
        self.running = Some(command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log).spawn().expect("a shell"));
        let begin = Instant::now();
        while !self.answers() {
            let log = || std::fs::read_to_string(self.directory.join("log")).unwrap_or_default();
            assert!(begin.elapsed() < LIMIT, "the server does not answer: {}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Stops it; its databases stay.
    pub fn stop(&mut self) {
        self.end("keep\n");
    }

    /// Has all of its processes stand still, with their connections open.
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    /// Lets them go on.
    pub fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        // None has been made when it failed to start, and it is gone when it has ended.
        let Ok(file) = std::fs::read_to_string(self.data().join("postmaster.pid")) else { return };
        let server = file.lines().next().expect("its process").to_owned();
        let children = format!("/proc/{server}/task/{server}/children");
        let children = std::fs::read_to_string(children).unwrap_or_default();
        let all = std::iter::once(server.as_str()).chain(children.split_whitespace());
        // A process that ended meanwhile needs no signal.
        Command::new("kill").arg(signal).args(all).status().expect("kill exists");
    }

    /// The URL of a new database.
    pub fn new_database(&self) -> String {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.psql("postgres", &format!("CREATE DATABASE {name}"));
        format!("postgresql://osmia@127.0.0.1:{}/{name}", self.port)
    }

    /// Makes a user who needs a password.
    pub fn new_user(&self, name: &str, password: &str) {
        self.psql("postgres", &format!("CREATE ROLE {name} LOGIN SUPERUSER PASSWORD '{password}'"));
        let path = self.data().join("pg_hba.conf");
        let others = std::fs::read_to_string(&path).expect("it is there");
        std::fs::write(path, format!("host all {name} 127.0.0.1/32 scram-sha-256\n{others}")).expect("it is written");
        self.psql("postgres", "SELECT pg_reload_conf()");
    }

    /// Has it carry out a statement; what it prints.
    pub fn psql(&self, database: &str, statement: &str) -> String {
        let database = database.rsplit('/').next().expect("a name");
        let done = self.ask(database, statement);
        assert!(done.status.success(), "{statement}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).expect("text").trim().to_owned()
    }

    fn answers(&self) -> bool {
        TcpStream::connect(("127.0.0.1", self.port)).is_ok() && self.ask("postgres", "SELECT 1").status.success()
    }

    fn ask(&self, database: &str, statement: &str) -> std::process::Output {
        Command::new(program("psql"))
            .args(["-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", &self.port.to_string()])
            .args(["-U", "osmia", "-d", database, "-c", statement])
            .output()
            .expect("psql starts")
    }

    fn end(&mut self, word: &str) {
        let Some(mut running) = self.running.take() else { return };
        // A test that failed while it stood still must not wait for ever.
        self.thaw();
        let mut input = running.stdin.take().expect("it is piped");
        // It may have ended already.
        let _ = input.write_all(word.as_bytes());
        drop(input);
        running.wait().expect("it ends");
    }

    fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.current_dir(&self.directory).env("LC_ALL", "C.UTF-8").env_remove("PGDATA");
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command
    }
}

impl Drop for PostgreSqlServer {
    fn drop(&mut self) {
        self.end("remove\n");
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// What `id` says of a user, or of this process.
fn number_of(what: &str, user: Option<&str>) -> Option<u32> {
    let said = Command::new("id").arg(what).args(user).output().ok()?;
    String::from_utf8(said.stdout).ok()?.trim().parse().ok()
}

/// Where a program of the server is: in the newest version that Debian has installed, or in the path.
fn program(name: &str) -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<(u32, PathBuf)> = versions
        .filter_map(|version| {
            Some((version.file_name().to_str()?.parse().ok()?, version.path().join("bin").join(name)))
        })
        .filter(|(_, path)| path.exists())
        .collect();
    found.sort();
    found.pop().map_or_else(|| PathBuf::from(name), |(_, path)| path)
}
