// Package requests counts what an API server was asked.
//
// Does: reads the server's metrics, tells writes from reads, and subtracts one moment from another.
//
// Never: asks the server; it is handed the text.
//
// Read first: [Parse], [Request.Kind].
package requests
