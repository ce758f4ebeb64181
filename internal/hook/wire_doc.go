// Package wire implements one HTTP exchange with an extension: it posts a JSON document and returns the response
// ([Conn.Post]). It converts the clientConfig of an ExtensionConfig to an [Endpoint] and maintains the connections to
// one extension ([Conn]). Connections use HTTPS with TLS 1.2 or newer, the extension's own CA bundle, and a client
// certificate that is reloaded when its files change; they are reused, do not follow redirects, and limit a response to
// 20 MiB. Every failure becomes a fault with a stable message, without local ports or times. Failed requests are not
// retried, except for the case documented at [Conn.Post].
package hook
