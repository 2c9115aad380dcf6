//! Connections that can be reset.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use axum::{
    extract::connect_info::Connected,
    serve::{IncomingStream, Listener},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
};

/// Accepts connections that can be reset.
#[derive(Debug)]
pub struct Door(pub TcpListener);

/// What a request knows of its connection.
#[derive(Clone, Debug, Default)]
pub struct Connection(Arc<AtomicBool>);

impl Connection {
    /// Makes the next write fail and the connection end with a reset.
    pub fn reset(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// One connection.
#[derive(Debug)]
pub struct Stream {
    tcp: TcpStream,
    connection: Connection,
}

impl Listener for Door {
    type Io = Stream;
    type Addr = std::net::SocketAddr;

    async fn accept(&mut self) -> (Stream, Self::Addr) {
        let (tcp, address) = Listener::accept(&mut self.0).await;
        (Stream { tcp, connection: Connection::default() }, address)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.0.local_addr()
    }
}

impl Connected<IncomingStream<'_, Door>> for Connection {
    fn connect_info(stream: IncomingStream<'_, Door>) -> Self {
        stream.io().connection.clone()
    }
}

impl Stream {
    fn check(&self) -> io::Result<()> {
        if !self.connection.0.load(Ordering::Acquire) {
            return Ok(());
        }
        self.tcp.set_zero_linger()?;
        Err(io::ErrorKind::ConnectionReset.into())
    }
}

impl AsyncRead for Stream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_read(cx, buf)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.tcp).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check()?;
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check()?;
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}
