// Package wake enqueues the objects of the Local controllers when something changes on the host. A [Broadcaster] distributes
// the events of a backend to the work queues of several controllers, and each controller maps an event to its objects.
package backend
