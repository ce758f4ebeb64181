// Package kernel manages the kernel resources that nodes in containers share with their host: capabilities, inotify
// limits, routes and addresses. It reads which capabilities the host refuses to containers and which address ranges it
// uses. It raises fs.inotify limits that are too low for more than a few nodes, and never lowers them.
package container
