package machines

import (
	"context"
	"fmt"
	"net/netip"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/infrastructure"
	"github.com/slipwayhq/slipway/internal/local/cloudinit"
	"github.com/slipwayhq/slipway/internal/redact"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
)

// maxLog limits the part of a log that becomes part of a condition, in bytes.
const maxLog = 2048

// maskSecrets masks the secrets of the bootstrap data in the output of a failed bootstrap, because more users can read a
// condition than the Secret. If the secrets cannot be determined, no output is shown. readRequested calls it.
func (c *controller) maskSecrets(ctx context.Context, s snapshot, p remote.Progress) (remote.Progress, error) {
	if p.State != remote.BootstrapFailed || len(p.Log) == 0 {
		p.Log = nil
		return p, nil
	}
	secrets, err := c.bootstrapSecrets(ctx, s)
	if why := fault.As(err); why != nil {
		p.Log = fmt.Appendf(nil, "(not shown, because the secrets in it are unknown: %s)", why.Message)
		return p, nil
	}
	if err != nil {
		p.Log = nil
		return p, err
	}
	text := redact.MaskSecrets(redact.Escape(string(p.Log)), secrets)
	p.Log = []byte(redact.Tail(text, maxLog))
	return p, nil
}

// bootstrapSecrets returns the secrets in the machine's bootstrap data. They must not be stored.
func (c *controller) bootstrapSecrets(ctx context.Context, s snapshot) ([]string, error) {
	if s.bootstrapSecretName() == "" {
		return nil, fault.New(fault.Transient, infrastructure.ReasonBootstrapData, "the Secret with the bootstrap data no longer exists")
	}
	value, format, err := infrastructure.ReadBootstrapData(ctx, c.secrets, client.ObjectKey{Namespace: s.Object.Namespace, Name: s.bootstrapSecretName()})
	if err != nil {
		return nil, err
	}
	if format != "" && format != formatCloudConfig { // JSON, in which contents are encoded: every word that could be a secret counts
		text := string(value)
		return append(redact.FindNamedSecrets(text), redact.FindOpaqueWords(text)...), nil
	}
	address, _ := netip.ParseAddr(inventory.NodeAddress(s.Host)) // the zero value only changes what a template prints
	return cloudinit.FindSecrets(cloudinit.BootstrapData{Value: value, Format: format}, cloudinit.NodeSettings{
		Name: s.Object.Name, Hostname: s.Host.Status.Facts.Hostname, ProviderID: s.Object.Spec.ProviderID, Address: address,
	})
}

// formatCloudConfig is the format of bootstrap data that the secrets can be found in exactly.
const formatCloudConfig = "cloud-config"
