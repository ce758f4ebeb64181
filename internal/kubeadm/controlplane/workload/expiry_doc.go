// Package expiry reads the expiration time of API server certificates. [Reader.Of] connects to the API server Pod of
// a Node through a forwarded port and reads the presented certificate. The certificate must be signed by the CA of
// the cluster, but it may have expired, because that is when its expiration matters most. Package rollout decides
// whether a Machine has to be replaced.
package workload
