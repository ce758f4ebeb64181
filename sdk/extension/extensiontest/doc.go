// Package extensiontest runs the handlers of an extension in tests, without a network and without a management cluster.
//
// Does: sends a request through everything the real server does with it, except TLS ([Call]); reads requests from files
// ([Load]); repeats recordings of `slipway extension record` ([Replay]); applies the patches of a response to the
// templates of its request ([Patched]). It checks what callers expect of every handler: the same answer to the same question
// ([Twice]), patches of what may be changed only ([Allowed], [Uncovered]), plans that can be used ([Plan]).
//
// Never: opens a socket.
//
// Read first: [Call].
package extensiontest
