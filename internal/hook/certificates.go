package hook

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"

	"github.com/slipwayhq/slipway/internal/fault"
)

// ClientCertificates is the client certificate for extensions, from the manager's flags
// --runtime-extension-client-cert-file and --runtime-extension-client-key-file. It is read from two files and reloaded
// when they change. Nil presents no certificate.
type ClientCertificates struct {
	cert, key string

	mu      sync.Mutex
	stamp   string
	current *tls.Certificate
}

// NewCertificates loads a certificate and its key from PEM files, once when the manager starts or for `slipway plan`.
func NewCertificates(certFile, keyFile string) (*ClientCertificates, error) {
	c := &ClientCertificates{cert: certFile, key: keyFile}
	if _, err := c.get(); err != nil {
		return nil, err
	}
	return c, nil
}

// get returns the current certificate. While the two files do not match, for example in the middle of a rotation, it
// returns the last matching pair.
func (c *ClientCertificates) get() (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	stamp := stampOf(c.cert) + stampOf(c.key)
	if c.current != nil && stamp == c.stamp {
		return c.current, nil
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err == nil {
		c.current, c.stamp = &pair, stamp
		return c.current, nil
	}
	if c.current != nil {
		return c.current, nil
	}
	return nil, fault.New(fault.Invalid, "ClientCertificate",
		"the client certificate for extensions cannot be read from %s and %s", c.cert, c.key).From(err)
}

// generation returns a pointer that changes when the certificate is rotated. A connection pool then closes its idle
// connections.
func (c *ClientCertificates) generation() *tls.Certificate {
	if c == nil {
		return nil
	}
	current, err := c.get()
	if err != nil {
		return nil
	}
	return current
}

// forHandshake is called by crypto/tls when a server requests a client certificate.
func (c *ClientCertificates) forHandshake(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	if c == nil {
		return &tls.Certificate{}, nil // crypto/tls: no certificate is sent
	}
	return c.get()
}

// stampOf returns a string that changes when the file does.
func stampOf(file string) string {
	info, err := os.Stat(file)
	if err != nil {
		return "-"
	}
	return fmt.Sprintf("%d/%d/", info.ModTime().UnixNano(), info.Size())
}
