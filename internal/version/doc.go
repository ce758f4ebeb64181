// Package version parses and compares Kubernetes versions and counts replicas by version. Package machines, the
// topology and MachinePool controllers, the webhooks and many commands use it. [Version] accepts versions as users and
// providers write them. [Runs] reports whether a kubelet runs the version of a spec, regardless of the suffix of a
// distribution, and [Span] checks whether a kubelet can join API servers of several versions. [Counts] computes the
// status field `versions` of every kind. Messages for users about unsupported versions are written by package machines
// and the webhooks.
package version
