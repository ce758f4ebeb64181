package workload

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"github.com/slipwayhq/slipway/internal/fault"
)

// callError is a failed probe or connection attempt without a response. Its message, which a condition may show, does
// not reveal how the call failed: a refused connection, a timeout and a certificate of another server look the same. A
// user who can write the Secret can choose the address, and could otherwise scan the network by the differences. The
// cause is for the log. [probeAPIServer] returns it.
type callError struct {
	// Host is the host and port that were called.
	Host    string
	address string
	cause   error
}

func (e *callError) Error() string { return unreachable(e.address) + ": " + e.cause.Error() }

// Unwrap returns a fault of kind Unreachable.
func (e *callError) Unwrap() error {
	return fault.New(fault.Unreachable, "Unreachable", "%s", unreachable(e.address)).From(e.cause)
}

// DetailedMessage returns a message with the cause of the failure, for an address that Slipway chose.
// [Clusters.Reconcile] shows it if [Config].IsManagedAddress reports such an address.
func (e *callError) DetailedMessage(limit time.Duration) string {
	var (
		timeout   net.Error
		invalid   x509.CertificateInvalidError
		untrusted *tls.CertificateVerificationError
	)
	switch {
	case errors.Is(e.cause, syscall.ECONNREFUSED):
		return fmt.Sprintf("nothing listens at the address of the API server, %s: the control plane is starting, or does not run", e.address)
	case errors.As(e.cause, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Sprintf("the certificate of the API server at %s has expired, or is not valid yet: replace it, and compare the clocks", e.address)
	case errors.As(e.cause, &untrusted):
		return fmt.Sprintf("the certificate of the API server at %s is not the one that the kubeconfig Secret describes: "+
			"check certificate-authority-data in the Secret", e.address)
	case errors.Is(e.cause, context.DeadlineExceeded), errors.Is(e.cause, os.ErrDeadlineExceeded), errors.As(e.cause, &timeout) && timeout.Timeout():
		return fmt.Sprintf("the API server at %s did not respond within %s: it is slow or overloaded", e.address, limit)
	case errors.Is(e.cause, syscall.EHOSTUNREACH), errors.Is(e.cause, syscall.ENETUNREACH):
		return fmt.Sprintf("there is no route to the API server at %s: the network of the cluster, or the machine that has the address, is absent", e.address)
	}
	return unreachable(e.address)
}

// expiredError is the error of a probe with an expired client certificate. It replaces the error of the API server,
// which rejects the credentials or ends the handshake.
type expiredError struct {
	Secret string
	At     time.Time
	// Unauthorized is set if the API server rejected the credentials.
	Unauthorized bool
}

func (e expiredError) Error() string {
	return fmt.Sprintf("the client certificate in Secret %s expired on %s: renew the Secret", e.Secret, e.At.UTC().Format(time.DateOnly))
}

// Is makes the error equal to errUnauthorized if the credentials were rejected.
func (e expiredError) Is(target error) bool { return e.Unauthorized && target == errUnauthorized }

// certificateExpiry returns when the client certificate of a configuration expires; zero if there is none, or it cannot
// be parsed. The connection compares it with the time of a failed probe ([connection.probe]).
func certificateExpiry(cfg *rest.Config) time.Time {
	if len(cfg.CertData) == 0 {
		return time.Time{}
	}
	chain, err := cert.ParseCertsPEM(cfg.CertData)
	if err != nil || len(chain) == 0 {
		return time.Time{}
	}
	return chain[0].NotAfter
}
