package machine

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/providers/local/backend"
	"github.com/slipwayhq/slipway/internal/providers/local/firstboot"
	"github.com/slipwayhq/slipway/internal/redact"
)

// withoutSecrets masks what is secret in the machine's bootstrap data in what the bootstrap and the kubelet printed: more people read a
// condition than may read the Secret. Where it is not known what is secret, nothing is shown.
func (c *Controller) withoutSecrets(ctx context.Context, s Snapshot, p backend.Progress) (backend.Progress, error) {
	if p.Phase == backend.Unusable || p.Log == "" && p.Kubelet == "" && p.APIServer == "" { // what is unusable is said by the backend
		return p, nil
	}
	secrets, err := c.bootstrapSecrets(ctx, s)
	if why := fault.As(err); why != nil {
		p.Log, p.Kubelet, p.APIServer = fmt.Sprintf("(not shown, since it is not known what is secret in them: %s)", why.Message), "", ""
		return p, nil
	}
	if err != nil {
		return p, err
	}
	p.Log, p.Kubelet = redact.Hide(p.Log, secrets), redact.Hide(p.Kubelet, secrets)
	p.APIServer = redact.Hide(p.APIServer, secrets)
	return p, nil
}

// bootstrapSecrets returns what is secret in the machine's bootstrap data. They are never kept.
func (c *Controller) bootstrapSecrets(ctx context.Context, s Snapshot) ([]string, error) {
	data, node, err := c.ownData(ctx, s)
	if err != nil {
		return nil, err
	}
	return firstboot.Secrets(data, node)
}

// skipped returns what of the bootstrap data the machine does not carry out. Data that is gone, or cannot be read any more, names nothing.
func (c *Controller) skipped(ctx context.Context, s Snapshot) ([]string, error) {
	data, node, err := c.ownData(ctx, s)
	var out []string
	if err == nil {
		out, err = firstboot.Skipped(data, node)
	}
	if fault.As(err) != nil {
		return nil, nil
	}
	return out, err
}

// ownData reads the machine's bootstrap data.
func (c *Controller) ownData(ctx context.Context, s Snapshot) (firstboot.Data, firstboot.Node, error) {
	node := firstboot.Node{Name: s.Name, Hostname: s.Host.Hostname, ProviderID: backend.ProviderID(s.Name), Address: s.Host.Address}
	if s.secret() == "" {
		return firstboot.Data{}, node, fault.New(fault.Transient, reasonBootstrapData, "there is no Secret with the bootstrap data any more")
	}
	data, err := c.bootstrapData(ctx, client.ObjectKey{Namespace: s.Object.Namespace, Name: s.secret()})
	return data, node, err
}
