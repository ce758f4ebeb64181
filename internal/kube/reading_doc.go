// Package reading shares expensive reads between concurrent callers ([Shared.Of]). Callers that arrive while something
// in a namespace is being read share the next read. Results are not cached: every caller gets the result of a read that
// started after its call.
package kube
