package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/sdk/hooks"
	"github.com/slipwayhq/slipway/test/bench/latency"
)

// served is what the process of the extensions says when it is ready.
type served struct {
	Addresses []string
	CA        string
}

// stats is what it says of itself since it was asked last.
type stats struct {
	Calls       int
	P50, P99    time.Duration // of its own time for a call
	Connections int           // made since it started
}

const statsPath = "/stats"

// server plays extensions that answer at once.
type server struct {
	mu          sync.Mutex
	took        []time.Duration
	connections int
}

func serve(n int) error {
	certificate, authority, err := selfSigned()
	if err != nil {
		return err
	}
	s := &server{}
	ready := served{CA: string(authority)}
	for range n {
		listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12})
		if err != nil {
			return err
		}
		ready.Addresses = append(ready.Addresses, listener.Addr().String())
		server := &http.Server{Handler: s, ConnState: s.connection, ReadHeaderTimeout: time.Minute}
		go func() { _ = server.Serve(listener) }()
	}
	if err := json.NewEncoder(os.Stdout).Encode(ready); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func (s *server) connection(_ net.Conn, state http.ConnState) {
	if state == http.StateNew {
		s.mu.Lock()
		s.connections++
		s.mu.Unlock()
	}
}

// ServeHTTP answers discovery and one handler, and notes its own time for the latter.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Path == statsPath:
		_ = json.NewEncoder(w).Encode(s.take())
	case r.URL.Path == hooks.Discovery.Path(""):
		_, _ = io.WriteString(w, `{"apiVersion":"`+hooks.Discovery.APIVersion()+`","kind":"DiscoveryResponse","status":"Success",`+
			`"handlers":[{"name":"check","timeoutSeconds":2,"requestHook":{"apiVersion":"`+hooks.Discovery.APIVersion()+`","hook":"BeforeClusterCreate"}}]}`)
	case strings.HasSuffix(r.URL.Path, "/check"):
		request := &hooksv1.BeforeClusterCreateRequest{}
		if err := json.NewDecoder(r.Body).Decode(request); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_, _ = fmt.Fprintf(w, `{"apiVersion":"%s","kind":"BeforeClusterCreateResponse","status":"Success","retryAfterSeconds":0}`, request.APIVersion)
		s.note(time.Since(began))
	default:
		http.NotFound(w, r)
	}
}

func (s *server) note(d time.Duration) {
	s.mu.Lock()
	s.took = append(s.took, d)
	s.mu.Unlock()
}

func (s *server) take() stats {
	s.mu.Lock()
	took := s.took
	s.took = nil
	out := stats{Calls: len(took), Connections: s.connections}
	s.mu.Unlock()
	out.P50, out.P99 = latency.Quantile(took, 0.5), latency.Quantile(took, 0.99)
	return out
}

// selfSigned returns a certificate for the loopback address that is its own authority.
func selfSigned() (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		NotBefore:   time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
