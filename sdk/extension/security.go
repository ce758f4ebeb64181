package extension

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/slipwayhq/slipway/sdk/extension/servingcert"
)

// lookEvery is the minimum interval between checks of the files.
const lookEvery = time.Second

// security has the identity of the extension and the allowed callers.
type security struct {
	server  *watched[*tls.Certificate]
	clients *watched[*x509.CertPool] // nil allows all callers
	name    string
}

func newSecurity(cfg Config) (*security, error) {
	s := &security{name: cfg.ClientName}
	if cfg.ClientName != "" && cfg.ClientCAFile == "" {
		return nil, errors.New("a client name without a client CA file allows anybody: name both or neither")
	}
	if cfg.ClientCAFile != "" {
		s.clients = &watched[*x509.CertPool]{files: []string{cfg.ClientCAFile}, read: readPool}
		if _, err := s.clients.get(); err != nil {
			return nil, err
		}
	}
	if (cfg.CertFile == "") != (cfg.KeyFile == "") {
		return nil, errors.New("a certificate needs its key: name both files or neither")
	}
	if cfg.CertFile != "" {
		s.server = &watched[*tls.Certificate]{files: []string{cfg.CertFile, cfg.KeyFile}, read: readPair}
		_, err := s.server.get()
		return s, err
	}
	made, err := servingcert.New(cfg.Hosts...)
	if err != nil {
		return nil, err
	}
	if cfg.CAFile != "" {
		if err := os.WriteFile(cfg.CAFile, made.CA, 0o644); err != nil {
			return nil, fmt.Errorf("writing the certificate authority: %w", err)
		}
	}
	pair, err := tls.X509KeyPair(made.Certificate, made.Key)
	if err != nil {
		return nil, err
	}
	s.server = &watched[*tls.Certificate]{value: &pair, set: true}
	return s, nil
}

func (s *security) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.server.get() }

// checkClient returns an error if the caller is not allowed.
func (s *security) checkClient(c *tls.ConnectionState) error {
	if c == nil || len(c.VerifiedChains) == 0 {
		return errors.New("this extension answers callers with a client certificate only")
	}
	leaf := c.VerifiedChains[0][0]
	if s.name == "" || leaf.Subject.CommonName == s.name || slices.Contains(leaf.DNSNames, s.name) {
		return nil
	}
	return errors.New("the client certificate is not one of the callers that this extension answers")
}

func readPair(files []string) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(files[0], files[1])
	if err != nil {
		return nil, fmt.Errorf("reading the certificate: %w", err)
	}
	return &pair, nil
}

func readPool(files []string) (*x509.CertPool, error) {
	data, err := os.ReadFile(files[0])
	if err != nil {
		return nil, fmt.Errorf("reading the client CA: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("the client CA file %s has no certificate", files[0])
	}
	return pool, nil
}

// watched is a value read from files, and read again when they change. If the new files cannot be read, the previous
// value remains in use, because a certificate and its key are rarely replaced at the same instant.
type watched[T any] struct {
	files []string
	read  func(files []string) (T, error)

	mu     sync.Mutex
	looked time.Time
	stamp  string
	value  T
	set    bool
}

func (w *watched[T]) get() (T, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.files) == 0 || w.set && time.Since(w.looked) < lookEvery {
		return w.value, nil
	}
	w.looked = time.Now()
	stamp := stampOf(w.files)
	if w.set && stamp == w.stamp {
		return w.value, nil
	}
	value, err := w.read(w.files)
	switch {
	case err == nil:
		w.value, w.set, w.stamp = value, true, stamp
	case !w.set:
		return w.value, err
	}
	return w.value, nil
}

// stampOf returns a value that changes when a file changes, including when it is replaced through a symbolic link as in
// Kubernetes.
func stampOf(files []string) string {
	var stamp string
	for _, f := range files {
		if info, err := os.Stat(f); err == nil {
			stamp += fmt.Sprintf("%d %d;", info.ModTime().UnixNano(), info.Size())
		}
	}
	return stamp
}
