// Package ui serves the read-only page of `slipway ui` about the Cluster API objects of management clusters. Each
// management cluster is a [Source] with a copy of its objects in memory (package fleet/mirror). Pages are rendered on
// the server from that copy with html/template, and a script of the page fetches a page again after a server-sent event
// and replaces the parts that differ.
//
//	guard.go     which requests are accepted: loopback, token, session cookie, Host, Origin, methods
//	hub.go       changes of objects -> events, at most two a second for each page
//	source.go    one management cluster: rows of the fleet, recent deletions
//	events.go    Events, cached for a short time; plans.go: plans of the manager
//	server.go    routes
//	page_*.go    the data of each page; timeline.go and rollout.go: the last hour of a cluster
//	view.go      what all pages have in common, and the functions of the templates
//	mask.go      credentials in an object -> masked
//
// Nothing is written to a management cluster, and Secrets and ConfigMaps are never read: the transport of the mirror
// rejects such requests.
package ui
