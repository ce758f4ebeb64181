package machine

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/local/cloudinit"
	"github.com/slipwayhq/slipway/internal/redact"
)

// maskSecrets masks the secrets of the machine's bootstrap data in the output of the bootstrap and the kubelet, right
// after the output was read, because more users can read a condition than the Secret. If the secrets cannot be
// determined, no output is shown. controller.readBootstrapProgress calls it.
func (c *controller) maskSecrets(ctx context.Context, s snapshot, p backend.Progress) (backend.Progress, error) {
	if p.Phase == backend.Unusable || p.Log == "" && p.Kubelet == "" && p.APIServer == "" { // the message for Unusable comes from the backend
		return p, nil
	}
	secrets, err := c.bootstrapSecrets(ctx, s)
	if why := fault.As(err); why != nil {
		p.Log, p.Kubelet, p.APIServer = fmt.Sprintf("(not shown, because the secrets in it are unknown: %s)", why.Message), "", ""
		return p, nil
	}
	if err != nil {
		return p, err
	}
	p.Log, p.Kubelet = redact.MaskSecrets(p.Log, secrets), redact.MaskSecrets(p.Kubelet, secrets)
	p.APIServer = redact.MaskSecrets(p.APIServer, secrets)
	return p, nil
}

// bootstrapSecrets returns the secrets in the machine's bootstrap data. They must not be stored.
func (c *controller) bootstrapSecrets(ctx context.Context, s snapshot) ([]string, error) {
	data, err := c.readBootstrapData(ctx, s)
	if err != nil {
		return nil, err
	}
	return cloudinit.FindSecrets(data, s.nodeSettings())
}

// skipped returns the parts of the bootstrap data that the machine does not apply. It returns nothing if the data are
// gone or invalid. controller.readBootstrapProgress calls it, and a condition lists the parts.
func (c *controller) skipped(ctx context.Context, s snapshot) ([]string, error) {
	data, err := c.readBootstrapData(ctx, s)
	var out []string
	if err == nil {
		out, err = cloudinit.SkippedParts(data, s.nodeSettings())
	}
	if fault.As(err) != nil {
		return nil, nil
	}
	return out, err
}

// readBootstrapData reads the machine's bootstrap data.
func (c *controller) readBootstrapData(ctx context.Context, s snapshot) (cloudinit.BootstrapData, error) {
	if s.bootstrapSecretName() == "" {
		return cloudinit.BootstrapData{}, fault.New(fault.Transient, reasonBootstrapData, "the Secret with the bootstrap data no longer exists")
	}
	return c.bootstrapData(ctx, client.ObjectKey{Namespace: s.Object.Namespace, Name: s.bootstrapSecretName()})
}
