// Package image implements the commands for what this host can run: "image" for node images in Docker and for loading
// images of Pods into nodes, and "versions" for the Kubernetes versions of hosted control planes. The commands need no
// management cluster that is running, and never pull images. "image build" builds a node image (package nodeimage).
// "image load" copies container images from Docker or archives into the node of the management cluster, or into the
// nodes of a workload cluster. "versions add" compiles a Kubernetes version, and "versions import" reads it from an
// archive (package nodeimage/versions). Adding a version requires write access to the data directory, and is not
// possible through the API.
package image
