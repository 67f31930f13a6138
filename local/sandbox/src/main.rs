#![doc = include_str!("../README.md")]

use std::{
    fs, io,
    net::{Shutdown, TcpListener, TcpStream},
    os::unix::{net::UnixStream, process::ExitStatusExt},
    path::{Path, PathBuf},
    process::{Command, ExitCode, ExitStatus},
    thread,
};

/// The folder with the sockets, next to this program. Each socket is named after its stand-in's address.
const STAND_INS: &str = "stand-ins";

/// Why the function cannot run.
#[derive(Debug)]
enum Fault {
    /// The variable `_HANDLER` does not name a function.
    NoFunction,
    /// This path, or the address in its name, cannot be used.
    At(PathBuf, io::Error),
}

fn main() -> ExitCode {
    match run() {
        Ok(status) => {
            // As in a shell, a function that a signal ends has failed.
            let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1);
            ExitCode::from(u8::try_from(code).unwrap_or(1))
        }
        Err(Fault::NoFunction) => {
            eprintln!("the variable _HANDLER names no function");
            ExitCode::FAILURE
        }
        Err(Fault::At(path, error)) => {
            eprintln!("{}: {error}", path.display());
            ExitCode::FAILURE
        }
    }
}

/// Opens the forwarders to the stand-ins, and runs the function until it ends.
fn run() -> Result<ExitStatus, Fault> {
    let own = std::env::current_exe().map_err(|error| Fault::At("/proc/self/exe".into(), error))?;
    let folder = own.parent().unwrap_or(Path::new("/"));
    #[expect(
        clippy::disallowed_methods,
        reason = "Lambda passes the function's name in it; this program has no other setting"
    )]
    let function = std::env::var("_HANDLER").map_err(|_| Fault::NoFunction)?;
    open_forwarders(&folder.join(STAND_INS))?;
    let program = folder.join(function);
    Command::new(&program).status().map_err(|error| Fault::At(program, error))
}

/// Listens at each stand-in's address before the function starts.
fn open_forwarders(sockets: &Path) -> Result<(), Fault> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |error| Fault::At(path, error)
    };
    for entry in fs::read_dir(sockets).map_err(at(sockets))? {
        let socket = entry.map_err(at(sockets))?.path();
        let address = socket.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let listener = TcpListener::bind(address).map_err(at(&socket))?;
        thread::spawn(move || forward(&listener, &socket));
    }
    Ok(())
}

/// Forwards each connection to the socket.
fn forward(listener: &TcpListener, socket: &Path) {
    for connection in listener.incoming().flatten() {
        let socket = socket.to_owned();
        thread::spawn(move || {
            if let Err(error) = join(&connection, &socket) {
                eprintln!("{}: {error}", socket.display());
            }
        });
    }
}

/// Copies data in both directions until both have ended.
fn join(inside: &TcpStream, socket: &Path) -> io::Result<()> {
    let outside = UnixStream::connect(socket)?;
    inside.set_nodelay(true)?;
    thread::scope(|scope| {
        scope.spawn(|| {
            let _ = io::copy(&mut &*inside, &mut &outside);
            let _ = outside.shutdown(Shutdown::Write);
        });
        // A broken connection ends the other side, so that the function sees what it would see without the forwarder.
        let _ = io::copy(&mut &outside, &mut &*inside);
        let _ = inside.shutdown(Shutdown::Write);
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        os::unix::net::UnixListener,
    };

    use super::*;

    #[test]
    fn a_forwarder_copies_between_the_address_and_the_socket() {
        let folder = tempfile::tempdir().expect("a folder");
        let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its address");
        let listener = UnixListener::bind(folder.path().join(free.to_string())).expect("a socket");
        open_forwarders(folder.path()).expect("opened");
        let mut client = TcpStream::connect(free).expect("the forwarder listens");
        let (mut stand_in, _) = listener.accept().expect("forwarded");

        client.write_all(b"asked").expect("sent");
        client.shutdown(Shutdown::Write).expect("ended");
        let mut asked = String::new();
        stand_in.read_to_string(&mut asked).expect("the end is forwarded, too");
        stand_in.write_all(b"answered").expect("sent");
        drop(stand_in);
        let mut answered = String::new();
        client.read_to_string(&mut answered).expect("read");
        assert_eq!((asked.as_str(), answered.as_str()), ("asked", "answered"));
    }

    #[test]
    fn an_address_that_is_taken_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
        let name = taken.local_addr().expect("its address").to_string();
        fs::write(folder.path().join(&name), "").expect("written");
        let fault = open_forwarders(folder.path()).expect_err("the address is taken");
        assert!(matches!(fault, Fault::At(path, _) if path.ends_with(&name)));
    }
}
