package inventory

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
)

// Keys of a Secret with credentials.
const (
	keyPrivate     = "ssh-privatekey"
	keyCertificate = "ssh-certificate"
)

// NodeAddress returns the IP address of the node on a host, empty if the SSHHost does not have it. Another address of the SSH server
// does not change the address of the node on a claimed host. Claims contain it, and the SSHCluster controller and
// `slipway hosts update` compare it.
func NodeAddress(h *infrav1.SSHHost) string {
	switch claim := h.Status.Claim; {
	case h.Spec.NodeAddress != "":
		return h.Spec.NodeAddress
	case claim != nil && claim.NodeAddress != "":
		return claim.NodeAddress
	}
	if _, err := netip.ParseAddr(h.Spec.Address); err == nil {
		return h.Spec.Address
	}
	return ""
}

// Target returns how the host is reached, with the private keys in the Secrets of its namespace. It is the only function
// that makes a target from an object, and denies addresses that the operator's configuration denies.
// The controllers of the provider, the commands under `slipway hosts` and `slipway logs node` call it.
func Target(ctx context.Context, secrets client.Reader, h *infrav1.SSHHost, p policy.Configuration) (remote.Target, error) {
	if message := Denied(h, p); message != "" {
		return remote.Target{}, fault.New(fault.Invalid, ReasonDenied, "%s", message)
	}
	out, err := server(ctx, secrets, h.Namespace, h.Spec.SSHServer)
	if err != nil {
		return remote.Target{}, err
	}
	out.Sudo, out.Namespace = h.Spec.Sudo == infrav1.SSHSudoAlways, NamespaceOf(h)
	if h.Spec.Jump != nil {
		jump, err := server(ctx, secrets, h.Namespace, *h.Spec.Jump)
		if err != nil {
			return remote.Target{}, err
		}
		out.Jump = &jump
	}
	return out, nil
}

// ReasonDenied is the reason of the fault for a host that the operator's configuration denies. The controllers of
// SSHHosts and SSHMachines recognize it.
const ReasonDenied = "DeniedByPolicy"

func server(ctx context.Context, secrets client.Reader, namespace string, s infrav1.SSHServer) (remote.Target, error) {
	secret := &corev1.Secret{}
	err := secrets.Get(ctx, client.ObjectKey{Namespace: namespace, Name: s.CredentialsRef.Name}, secret)
	if apierrors.IsNotFound(err) {
		return remote.Target{}, fault.New(fault.Invalid, "CredentialsAbsent",
			"Secret %s with the SSH key of host %s does not exist in namespace %s: create it with the key %s", s.CredentialsRef.Name, s.Address, namespace, keyPrivate)
	}
	if err != nil {
		return remote.Target{}, fmt.Errorf("reading Secret %s/%s: %w", namespace, s.CredentialsRef.Name, err)
	}
	if len(secret.Data[keyPrivate]) == 0 {
		return remote.Target{}, fault.New(fault.Invalid, "CredentialsInvalid",
			"Secret %s with the SSH key of host %s has no key %q", s.CredentialsRef.Name, s.Address, keyPrivate)
	}
	return remote.Target{
		Address: s.Address, Port: int(s.Port), User: s.User, HostKeys: s.HostKeys,
		PrivateKey: secret.Data[keyPrivate], Certificate: secret.Data[keyCertificate],
	}, nil
}
