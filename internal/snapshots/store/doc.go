// Package store stores the files of etcd snapshots in a folder of this host ([Folder]) or in an S3-compatible store
// ([S3]). Package snapshots opens stores and names the files. Files are written from streams and appear only when
// complete. They can be read, listed and deleted. Names are relative paths with slashes and cannot escape the folder or
// the prefix of the bucket. The package does not interpret the files; package policy decides who may use which folder
// or endpoint.
package store
