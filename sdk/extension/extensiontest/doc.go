// Package extensiontest tests the handlers of an extension without a network and without a management cluster. It sends
// a request through all layers of the server except TLS ([Call]), reads requests from files ([Load]), repeats
// recordings of `slipway extension record` ([Replay]), and applies the patches of a response to the templates in its
// request ([Patched]). It checks general requirements for handlers: equal responses to equal requests ([Twice]),
// patches of permitted fields only ([Allowed], [Uncovered]), valid upgrade plans ([Plan]).
package extensiontest
