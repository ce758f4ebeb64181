package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/slipwayhq/slipway/internal/fault"
)

// dialer opens a network connection: directly, or through a jump host.
type dialer func(ctx context.Context, address string) (net.Conn, error)

// directly dials without a jump host.
func directly(ctx context.Context, address string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "tcp", address)
}

// through dials through a connected jump host.
func through(jump *ssh.Client) dialer {
	return func(ctx context.Context, address string) (net.Conn, error) {
		return jump.DialContext(ctx, "tcp", address)
	}
}

// handshake collects what a handshake has reached, because the ssh package has no error types for it.
type handshake struct {
	target Target
	pinned []ssh.PublicKey
	signer ssh.Signer
	// mismatch is set if the host key is not pinned. authenticating is set once the key was offered.
	mismatch       *fault.Fault
	authenticating bool
	presented      ssh.PublicKey
}

// newHandshake returns a handshake with a host. The pool calls it for each new connection.
func newHandshake(t Target) (*handshake, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	h := &handshake{target: t}
	var err error
	if h.pinned, err = t.hostKeys(); err != nil {
		return nil, err
	}
	h.signer, err = t.signer()
	return h, err
}

func (h *handshake) config() *ssh.ClientConfig {
	return &ssh.ClientConfig{
		Config:            ssh.Config{KeyExchanges: keyExchanges(), Ciphers: ciphers(), MACs: macs()},
		User:              h.target.User,
		HostKeyAlgorithms: hostKeyAlgorithms(h.pinned),
		HostKeyCallback:   h.checkHostKey,
		ClientVersion:     "SSH-2.0-slipway",
		Auth: []ssh.AuthMethod{ssh.PublicKeysCallback(func() ([]ssh.Signer, error) {
			h.authenticating = true
			return []ssh.Signer{h.signer}, nil
		})},
	}
}

// checkHostKey accepts a pinned key only.
func (h *handshake) checkHostKey(_ string, _ net.Addr, key ssh.PublicKey) error {
	h.presented = key
	if slices.ContainsFunc(h.pinned, func(k ssh.PublicKey) bool { return bytes.Equal(k.Marshal(), key.Marshal()) }) {
		return nil
	}
	h.mismatch = keyMismatch(h.target, key, h.pinned)
	return h.mismatch
}

// dial connects and authenticates. Its errors are faults.
func (h *handshake) dial(ctx context.Context, dial dialer) (*ssh.Client, error) {
	conn, err := dial(ctx, h.target.address())
	if err != nil {
		return nil, unreachable(h.target, err)
	}
	client, err := shake(ctx, conn, h.target.address(), h.config())
	if err != nil {
		return nil, h.classify(err)
	}
	return client, nil
}

// shake does the handshake on a connection, which it closes on failure and when the context ends first.
func shake(ctx context.Context, conn net.Conn, address string, config *ssh.ClientConfig) (*ssh.Client, error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline) // a connection through a jump host has no deadlines; closing it ends the handshake
	}
	c, channels, requests, err := ssh.NewClientConn(conn, address, config)
	if err != nil {
		stop()
		_ = conn.Close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, err
	}
	if !stop() {
		_ = c.Close()
		return nil, ctx.Err()
	}
	_ = conn.SetDeadline(time.Time{})
	return ssh.NewClient(c, channels, requests), nil
}

// classify returns the fault for a failed handshake.
func (h *handshake) classify(err error) error {
	var timeout net.Error
	switch {
	case h.mismatch != nil:
		return h.mismatch
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, io.EOF), errors.As(err, &timeout) && timeout.Timeout():
		return unreachable(h.target, err)
	case h.authenticating:
		return fault.New(fault.Invalid, reasonAuthenticationFailed,
			"host %s does not accept the key %s for user %s; add its public key to the user's authorized_keys, or correct the user or the Secret",
			h.target.Address, ssh.FingerprintSHA256(h.signer.PublicKey()), h.target.User).From(err)
	}
	var negotiation *ssh.AlgorithmNegotiationError
	if errors.As(err, &negotiation) {
		return fault.New(fault.Invalid, reasonNoCommonAlgorithm, "the SSH server of host %s supports none of the algorithms that Slipway accepts; update OpenSSH there to version 7 or newer", h.target.Address).From(err)
	}
	return unreachable(h.target, err)
}

func unreachable(t Target, err error) *fault.Fault {
	if t.Jump != nil {
		return fault.New(fault.Unreachable, ReasonUnreachable, "host %s does not respond at %s through jump host %s", t.Address, t.address(), t.Jump.Address).From(err)
	}
	return fault.New(fault.Unreachable, ReasonUnreachable, "host %s does not respond at %s", t.Address, t.address()).From(err)
}

// errScanned ends the handshake of a scan.
var errScanned = errors.New("the host key was read")

// ScanHostKeys returns the host keys that a server presents, as lines of authorized_keys: one for each type that it has,
// best first. It does not authenticate at the host. The address, the port and the jump host of the target are used. A
// scan proves nothing: the keys must be compared with those on the host before they are pinned. `slipway hosts add`
// calls it.
func (p *Pool) ScanHostKeys(ctx context.Context, t Target) ([]string, error) {
	if t.User == "" {
		t.User = "root"
	}
	if err := t.check(); err != nil {
		return nil, err
	}
	dial := dialer(directly)
	if t.Jump != nil {
		jump, err := p.connect(ctx, *t.Jump)
		if err != nil {
			return nil, err
		}
		defer p.release(jump)
		dial = through(jump.client)
	}
	var out []string
	for _, algorithm := range []string{ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoRSASHA256} {
		key, err := scan(ctx, t, dial, algorithm)
		if err != nil {
			return nil, err
		}
		if key != "" {
			out = append(out, key)
		}
	}
	if len(out) == 0 {
		return nil, fault.New(fault.Invalid, reasonNoHostKey, "the SSH server of host %s has no ed25519, ECDSA or RSA key", t.Address)
	}
	return out, nil
}

// scan returns the key for one algorithm, empty if the server has none.
func scan(ctx context.Context, t Target, dial dialer, algorithm string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, defaultDialTimeout)
	defer cancel()
	conn, err := dial(ctx, t.address())
	if err != nil {
		return "", unreachable(t, err)
	}
	line := ""
	_, err = shake(ctx, conn, t.address(), &ssh.ClientConfig{
		Config: ssh.Config{KeyExchanges: keyExchanges(), Ciphers: ciphers(), MACs: macs()}, User: t.User, HostKeyAlgorithms: []string{algorithm},
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			line = string(bytes.TrimSpace(ssh.MarshalAuthorizedKey(key)))
			return errScanned
		},
	})
	var negotiation *ssh.AlgorithmNegotiationError
	switch {
	case line != "" || errors.As(err, &negotiation):
		return line, nil
	case err == nil:
		return "", fmt.Errorf("scanning the keys of host %s: the handshake ended without a key", t.Address)
	}
	return "", unreachable(t, err)
}
