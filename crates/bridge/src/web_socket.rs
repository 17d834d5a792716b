//! What both sides of a link ask of the WebSocket.

use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use crate::protocol::MAX_MESSAGE_BYTES;

/// Bytes read at once. The library clears the buffer before each read, so its default of 128 KiB would cost more than
/// the message.
const READ_BUFFER_BYTES: usize = 16 * 1024;

/// Limits and buffers of a link.
pub(crate) fn web_socket_config() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .max_message_size(Some(MAX_MESSAGE_BYTES))
        .max_frame_size(Some(MAX_MESSAGE_BYTES))
}
