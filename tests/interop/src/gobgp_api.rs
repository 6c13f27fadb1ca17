//! GoBGP's gRPC API, as far as SR policies need it: its 3.10 command line does not know that family.
//!
//! Each call is one HTTP/2 connection over the daemon's Unix socket. The messages are those of its `api/gobgp.proto` and
//! `api/attribute.proto`, with the fields that are used here.

pub mod messages;

use std::path::PathBuf;

use bytes::{BufMut as _, Bytes, BytesMut};
use http::Request;
use prost::Message;
use tokio::net::UnixStream;

use messages::{
    AddPathRequest, AddPathResponse, DeletePathRequest, Destination, Empty, Family, ListPathRequest,
    ListPathResponse, Path,
};

/// The API of one daemon.
#[derive(Clone, Debug)]
pub struct Api {
    socket: PathBuf,
}

impl Api {
    /// The API on a Unix socket.
    #[must_use]
    pub const fn new(socket: PathBuf) -> Self {
        Self { socket }
    }

    /// Adds a route of GoBGP's own to its table.
    ///
    /// # Errors
    ///
    /// Why it did not.
    pub fn add_path(&self, path: Path) -> Result<(), String> {
        let request = AddPathRequest { path: Some(path), ..AddPathRequest::default() };
        self.call::<AddPathResponse>("AddPath", &request).map(drop)
    }

    /// Takes back a route of its own.
    ///
    /// # Errors
    ///
    /// Why it did not.
    pub fn delete_path(&self, path: Path) -> Result<(), String> {
        let request =
            DeletePathRequest { family: path.family, path: Some(path), ..DeletePathRequest::default() };
        self.call::<Empty>("DeletePath", &request).map(drop)
    }

    /// Its table of one family, with the octets of each path beside what they mean.
    ///
    /// # Errors
    ///
    /// Why it did not say.
    pub fn list_paths(&self, family: Family) -> Result<Vec<Destination>, String> {
        let request = ListPathRequest {
            family: Some(family),
            enable_nlri_binary: true,
            enable_attribute_binary: true,
            ..ListPathRequest::default()
        };
        let responses = self.call::<ListPathResponse>("ListPath", &request)?;
        Ok(responses.into_iter().filter_map(|response| response.destination).collect())
    }

    /// One call; what streams back is collected.
    fn call<R: Message + Default>(&self, method: &str, request: &impl Message) -> Result<Vec<R>, String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .map_err(|error| error.to_string())?;
        let answer = runtime.block_on(self.exchange(method, frame(request)))?;
        let mut rest = &*answer;
        let mut messages = Vec::new();
        while let Some((head, after)) = rest.split_first_chunk::<5>() {
            let [_, a, b, c, d] = *head;
            let length = u32::from_be_bytes([a, b, c, d]) as usize;
            let (message, after) = after.split_at_checked(length).ok_or("a message is cut short")?;
            messages.push(R::decode(message).map_err(|error| error.to_string())?);
            rest = after;
        }
        Ok(messages)
    }

    async fn exchange(&self, method: &str, request: Bytes) -> Result<Vec<u8>, String> {
        let stream = UnixStream::connect(&self.socket).await.map_err(|error| error.to_string())?;
        let (client, connection) = h2::client::handshake(stream).await.map_err(|error| error.to_string())?;
        // It ends with this runtime.
        tokio::spawn(connection);
        let mut client = client.ready().await.map_err(|error| error.to_string())?;
        let head = Request::post(format!("http://localhost/apipb.GobgpApi/{method}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(())
            .map_err(|error| error.to_string())?;
        let (response, mut body) = client.send_request(head, false).map_err(|error| error.to_string())?;
        body.send_data(request, true).map_err(|error| error.to_string())?;
        let response = response.await.map_err(|error| error.to_string())?;
        let early = status(response.headers());
        let mut answer = Vec::new();
        let mut body = response.into_body();
        while let Some(chunk) = body.data().await {
            let chunk = chunk.map_err(|error| error.to_string())?;
            answer.extend_from_slice(&chunk);
            body.flow_control().release_capacity(chunk.len()).map_err(|error| error.to_string())?;
        }
        let trailers = body.trailers().await.map_err(|error| error.to_string())?;
        match trailers.as_ref().and_then(status).or(early) {
            Some(Ok(())) => Ok(answer),
            Some(Err(error)) => Err(format!("{method}: {error}")),
            None => Err(format!("{method}: no status")),
        }
    }
}

/// What gRPC says of the call.
fn status(headers: &http::HeaderMap) -> Option<Result<(), String>> {
    let code = headers.get("grpc-status")?;
    let text = headers.get("grpc-message").map(|text| String::from_utf8_lossy(text.as_bytes()).into_owned());
    Some(if code == "0" { Ok(()) } else { Err(format!("{code:?} {}", text.unwrap_or_default())) })
}

/// A message behind its length, uncompressed.
fn frame(message: &impl Message) -> Bytes {
    let octets = message.encode_to_vec();
    let mut out = BytesMut::with_capacity(5 + octets.len());
    out.put_u8(0);
    out.put_u32(octets.len() as u32);
    out.put_slice(&octets);
    out.freeze()
}
