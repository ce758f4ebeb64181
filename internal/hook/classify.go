package hook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"reflect"
	"syscall"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Reasons of errors of a call of a Runtime Extension without a usable HTTP response. All are of kind Unreachable. Waits
// of controllers have them, and this package decides by them which errors count as failures and which remedy a message
// contains. Package rootcause maps the values to remedies (remedies_*.go).
const (
	reasonHostUnknown     = "HostUnknown"
	reasonRefused         = "ConnectionRefused"
	reasonNoRoute         = "NoConnection"
	reasonExpired         = "CertificateExpired"
	reasonWrongHost       = "CertificateWrongHost"
	reasonUnknownCA       = "CertificateUnknownAuthority"
	reasonBadCertificate  = "CertificateInvalid"
	reasonTLS             = "TLSFailed"
	reasonClientRefused   = "ClientCertificateRefused"
	reasonTimeout         = "Timeout"
	reasonLost            = "ConnectionLost"
	reasonHTTPStatus      = "HTTPStatus"
	reasonRedirect        = "Redirect"
	reasonTooLarge        = "AnswerTooLarge"
	reasonTransportFailed = "TransportFailed"
)

// unconnected reports whether a reason means that the extension never received the request. The circuit breakers
// distinguish by it a failing extension from a failing handler.
func unconnected(reason string) bool {
	switch reason {
	case reasonHostUnknown, reasonRefused, reasonNoRoute, reasonExpired, reasonWrongHost, reasonUnknownCA,
		reasonBadCertificate, reasonTLS, reasonClientRefused:
		return true
	}
	return false
}

// classify converts a network error of [Conn.Post] to a fault. Its message is in conditions and must be the same for
// each failure of this kind, without ports or times. The original text is for the log.
func (c *Conn) classify(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	reason, message := c.explain(err)
	return fault.New(fault.Unreachable, reason, "%s", message).With("cause", err.Error())
}

func (c *Conn) explain(err error) (reason, message string) {
	host := c.endpoint.Host()
	if reason, message := explainCertificate(err, host); reason != "" {
		return reason, message
	}
	var (
		dns       *net.DNSError
		record    tls.RecordHeaderError
		timeout   net.Error
		handshake handshakeError
		without   unconnectedError
		op        *net.OpError
	)
	alert, alerted := alertOf(err)
	switch {
	case errors.As(err, &dns):
		return reasonHostUnknown, "the name " + dns.Name + " cannot be resolved"
	case (errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()) && errors.As(err, &without):
		return reasonNoRoute, "connecting to " + host + " timed out"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return reasonTimeout, host + " did not respond in time"
	case errors.Is(err, syscall.ECONNREFUSED):
		return reasonRefused, "nothing listens at " + host
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return reasonNoRoute, "there is no route to " + host
	case errors.As(err, &record):
		return reasonTLS, host + " does not speak TLS"
	case alerted:
		return explainAlert(alert, host)
	case errors.As(err, &handshake):
		return reasonTLS, "the TLS handshake with " + host + " failed; it must speak TLS 1.2 or newer"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE):
		return reasonLost, host + " closed the connection before the response was complete"
	case errors.As(err, &op) && op.Op == "dial":
		return reasonNoRoute, "no connection to " + host
	}
	return reasonTransportFailed, "the HTTP request to " + host + " failed"
}

func explainCertificate(err error, host string) (reason, message string) {
	var (
		invalid  x509.CertificateInvalidError
		hostname x509.HostnameError
		unknown  x509.UnknownAuthorityError
		failed   *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return reasonExpired, "the certificate of " + host + " has expired or is not valid yet; renew it"
	case errors.As(err, &hostname):
		return reasonWrongHost, "the certificate of " + host + " is for another name; issue one for this name"
	case errors.As(err, &unknown):
		return reasonUnknownCA, "the certificate of " + host +
			" is not signed by a CA in spec.clientConfig.caBundle; correct caBundle"
	case errors.As(err, &failed), errors.As(err, &invalid):
		return reasonBadCertificate, "the certificate of " + host + " is not valid for a server"
	}
	return "", ""
}

// TLS alerts by which a server rejects the client certificate or the handshake (RFC 8446, 6.2).
const (
	alertHandshakeFailure     = 40
	alertBadCertificate       = 42
	alertUnknownCA            = 48
	alertAccessDenied         = 49
	alertProtocolVersion      = 70
	alertCertificateRequired  = 116
	alertCertificateExpired   = 45
	alertUnsupportedCert      = 43
	alertCertificateUnknown   = 46
	alertCertificateRevoked   = 44
	alertInsufficientSecurity = 71
)

// alertOf returns the TLS alert that the peer sent. Its type in crypto/tls is not exported: an integer of one byte.
func alertOf(err error) (uint8, bool) {
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "remote error" {
		return 0, false
	}
	v := reflect.ValueOf(op.Err)
	if v.Kind() != reflect.Uint8 {
		return 0, false
	}
	return uint8(v.Uint()), true
}

func explainAlert(alert uint8, host string) (reason, message string) {
	switch alert {
	case alertBadCertificate, alertUnsupportedCert, alertCertificateRevoked, alertCertificateExpired,
		alertCertificateUnknown, alertUnknownCA, alertAccessDenied, alertCertificateRequired:
		return reasonClientRefused, host + " rejects the client certificate; set --runtime-extension-client-cert-file to one that it accepts"
	case alertProtocolVersion, alertHandshakeFailure, alertInsufficientSecurity:
		return reasonTLS, host + " does not speak TLS 1.2 or newer"
	}
	return reasonTLS, "the TLS handshake with " + host + " failed"
}

// refusal returns the fault for a response with an HTTP status other than 200. Post returns it.
func (c *Conn) refusal(code int) error {
	host := c.endpoint.Host()
	if code >= 300 && code < 400 {
		return fault.New(fault.Unreachable, reasonRedirect,
			"%s responded with a redirect (HTTP %d), which is not followed", host, code).With("code", code)
	}
	return fault.New(fault.Unreachable, reasonHTTPStatus, "%s responded with HTTP %d %s", host, code,
		http.StatusText(code)).With("code", code)
}

// statusCode returns the HTTP status code of a fault from refusal; 0 if it has none.
func statusCode(f *fault.Fault) int {
	for i := 0; i+1 < len(f.Details); i += 2 {
		if code, ok := f.Details[i+1].(int); ok && f.Details[i] == "code" {
			return code
		}
	}
	return 0
}

// tooLarge returns the fault for a response above the size limit.
func (c *Conn) tooLarge() error {
	return fault.New(fault.Unreachable, reasonTooLarge, "the response of %s is larger than %d MiB", c.endpoint.Host(),
		maxResponseBytes>>20)
}
