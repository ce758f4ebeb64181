package machines

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"fmt"
	"strings"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/bundle"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/infrastructure"
	"github.com/slipwayhq/slipway/internal/jobs"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
)

// readProgress reads the progress of the bootstrap. It is the only read that [decide] requests; the other types in this
// file are its actions, which act runs.
type readProgress struct{ Host string }

func (a readProgress) String() string { return "the bootstrap progress of host " + a.Host }

// identify writes the claim ID, the provider ID and the finalizer before a host is claimed.
type identify struct{}

func (identify) String() string {
	return "set the claim ID and the provider ID: they identify the machine on its host"
}

// claimHost writes the claim of the machine to a host.
type claimHost struct{ Host, Why string }

func (a claimHost) String() string { return fmt.Sprintf("claim SSHHost %s: %s", a.Host, a.Why) }

// releaseHost marks the claim of a host as released.
type releaseHost struct{ Host, Why string }

func (a releaseHost) String() string { return fmt.Sprintf("release SSHHost %s: %s", a.Host, a.Why) }

// rejectHost releases a host that cannot become this machine.
type rejectHost struct{ Host, Why string }

func (a rejectHost) String() string { return fmt.Sprintf("release SSHHost %s: %s", a.Host, a.Why) }

// dropClaim removes the claim of a host that was not changed for it.
type dropClaim struct{ Host, Why string }

func (a dropClaim) String() string {
	return fmt.Sprintf("drop the claim of SSHHost %s: %s", a.Host, a.Why)
}

// prepare starts the job that prepares the host.
type prepare struct{ Host, What string }

func (a prepare) String() string { return a.What + ": it is claimed and not prepared yet" }

// cancelPreparation cancels the job that prepares the host.
type cancelPreparation struct{ Host string }

func (a cancelPreparation) String() string {
	return fmt.Sprintf("cancel the preparation of SSHHost %s: the SSHMachine is being deleted", a.Host)
}

// runBootstrap runs the bootstrap data on the host.
type runBootstrap struct{ Host, Secret string }

func (a runBootstrap) String() string {
	return fmt.Sprintf("run the bootstrap data of Secret %s on SSHHost %s: the host is prepared", a.Secret, a.Host)
}

// act runs an action of the plan. The driver (package reconciler) calls it.
func (c *controller) act(ctx context.Context, s snapshot, a reconciler.Action) error {
	switch a := a.(type) {
	case identify:
		return c.identify(ctx, s.Object)
	case claimHost:
		if h := find(a.Host, s.Recorded, s.Hosts); h != nil {
			return inventory.Claim(ctx, c.writer, h, inventory.NewClaim(s.Object, s.Namespace.UID, h))
		}
	case releaseHost:
		if h := find(a.Host, s.Recorded, []*infrav1.SSHHost{s.Host}); h != nil {
			return inventory.Release(ctx, c.writer, h, inventory.NewClaim(s.Object, s.Namespace.UID, h))
		}
	case rejectHost:
		return inventory.Reject(ctx, c.writer, s.Host)
	case dropClaim:
		if h := find(a.Host, s.Surplus, []*infrav1.SSHHost{s.Host}); h != nil {
			return inventory.Drop(ctx, c.writer, h)
		}
	case prepare:
		c.startPreparation(ctx, s, a)
		return nil
	case cancelPreparation:
		c.Jobs.Cancel(jobs.Key(kind, client.ObjectKeyFromObject(s.Object)))
		return nil
	case runBootstrap:
		err := c.bootstrap(ctx, s, a)
		if f := fault.As(err); f != nil && f.Kind == fault.Invalid {
			c.rejected.put(s.Object, rejection{Claim: s.Object.Spec.ClaimID, Secret: a.Secret, Fault: f, At: c.now()})
		}
		return err
	}
	return reconciler.UnknownAction("SSH machine", a)
}

// find returns the host with the name.
func find(name string, lists ...[]*infrav1.SSHHost) *infrav1.SSHHost {
	for _, list := range lists {
		for _, h := range list {
			if h != nil && nameOf(h) == name {
				return h
			}
		}
	}
	return nil
}

func (c *controller) identify(ctx context.Context, o *infrav1.SSHMachine) error {
	id := o.Spec.ClaimID
	if id == "" {
		id = newClaimID()
	}
	return c.writer.Patch(ctx, o, func(o client.Object) {
		spec := &o.(*infrav1.SSHMachine).Spec
		spec.ClaimID, spec.ProviderID = id, inventory.ProviderID(id)
		controllerutil.AddFinalizer(o, infrav1.SSHMachineFinalizer)
	})
}

// newClaimID returns 128 random bits as 26 characters.
func newClaimID() string {
	random := make([]byte, 16)
	_, _ = rand.Read(random) // never fails
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(random))
}

// preparationTimeout ends the preparation of a host that makes no progress. The next one continues the upload.
const preparationTimeout = time.Hour

// startPreparation starts the job that prepares the host. An error that is no fault concerns the manager: it is logged, because users
// may not know it.
func (c *controller) startPreparation(ctx context.Context, s snapshot, a prepare) {
	logger := ctrl.LoggerFrom(ctx)
	h, b, settings := s.Host.DeepCopy(), s.Bundle, nodeSettings(s.Host.Spec.Settings, s.Object.Spec.Settings)
	options, claimID := s.preflightOptions(), s.Object.Spec.ClaimID
	managed := s.Object.Spec.Bundle != infrav1.SSHBundleNone
	c.Jobs.Start(jobs.Key(kind, client.ObjectKeyFromObject(s.Object)), a.What, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, preparationTimeout)
		defer cancel()
		host, err := c.connectFor(ctx, h, claimID)
		if err != nil {
			return err
		}
		if err = checkHost(ctx, host, options); err == nil && managed {
			err = installNode(ctx, host, b, settings)
		}
		if err = inventory.Neutral(h, err); err != nil && fault.As(err) == nil {
			logger.Error(err, "preparing a host failed", "SSHHost", nameOf(h))
		}
		return err
	})
}

// checkHost runs all preflight checks for this machine, before anything on the host changes.
func checkHost(ctx context.Context, h Host, o remote.PreflightOptions) error {
	findings, err := h.Preflight(ctx, o)
	if err != nil {
		return err
	}
	var fatal []string
	for _, f := range findings {
		if f.Fatal {
			fatal = append(fatal, "* "+inventory.Sentence(f.String()))
		}
	}
	if len(fatal) == 0 {
		return nil
	}
	return fault.New(fault.Invalid, reasonPreflight, "the host cannot become this node:\n%s", strings.Join(fatal, "\n"))
}

func installNode(ctx context.Context, h Host, b bundle.Bundle, s remote.NodeSettings) error {
	if err := h.InstallBundle(ctx, b, nil); err != nil {
		return err
	}
	return h.PrepareNode(ctx, b, s)
}

// preflightOptions describes the node for the preflight checks.
func (s snapshot) preflightOptions() remote.PreflightOptions {
	managed := s.Object.Spec.Bundle != infrav1.SSHBundleNone
	out := remote.PreflightOptions{ControlPlane: s.isControlPlane(), ManagedBundle: managed, Hostnames: map[string]string{}, MachineIDs: map[string]string{}, ProductUUIDs: map[string]string{}}
	if managed {
		out.Architecture, out.BundleBytes, out.BundleDigest = s.Bundle.Architecture, s.Bundle.Size(), s.Bundle.Digest
	}
	for _, p := range s.Peers {
		if nameOf(p) == nameOf(s.Host) {
			continue
		}
		if f := p.Status.Facts; f.Hostname != "" {
			out.Hostnames[f.Hostname] = nameOf(p)
		}
		if f := p.Status.Facts; f.MachineIDHash != "" {
			out.MachineIDs[f.MachineIDHash] = nameOf(p)
		}
		if f := p.Status.Facts; f.ProductUUIDHash != "" {
			out.ProductUUIDs[f.ProductUUIDHash] = nameOf(p)
		}
	}
	return out
}

// nodeSettings returns the settings of a host with those of the machine that uses it.
func nodeSettings(host, machine infrav1.SSHHostSettings) remote.NodeSettings {
	s := host
	if p := machine.Proxy; p.HTTP != "" || p.HTTPS != "" || len(p.No) > 0 {
		s.Proxy = p
	}
	if len(machine.RegistryMirrors) > 0 {
		s.RegistryMirrors = machine.RegistryMirrors
	}
	if machine.AdditionalTrustedCAs != "" {
		s.AdditionalTrustedCAs = strings.Trim(host.AdditionalTrustedCAs+"\n"+machine.AdditionalTrustedCAs, "\n") + "\n"
	}
	return remote.NodeSettings{
		HTTPProxy: s.Proxy.HTTP, HTTPSProxy: s.Proxy.HTTPS, NoProxy: strings.Join(s.Proxy.No, ","),
		RegistryMirrors: s.RegistryMirrors, TrustedCAs: []byte(s.AdditionalTrustedCAs),
	}
}

// bootstrap reads the bootstrap data and starts it on the host. The data must never be stored in a snapshot, a log or a
// status.
func (c *controller) bootstrap(ctx context.Context, s snapshot, a runBootstrap) error {
	value, format, err := infrastructure.ReadBootstrapData(ctx, c.secrets, client.ObjectKey{Namespace: s.Object.Namespace, Name: a.Secret})
	if err != nil {
		return err
	}
	h, err := c.connect(ctx, s.Host)
	if err != nil {
		return err
	}
	err = inventory.Neutral(s.Host, h.StartBootstrap(ctx, remote.Bootstrap{
		ClaimID: s.Object.Spec.ClaimID, Name: s.Object.Name, Hostname: s.Host.Status.Facts.Hostname, ProviderID: s.Object.Spec.ProviderID,
		Address: inventory.NodeAddress(s.Host), Format: format, Data: value, Timeout: s.timeout(),
	}))
	if f := fault.As(err); f != nil && f.Kind == fault.Invalid && !remote.ConcernsConnection(f) {
		return fault.New(f.Kind, f.Reason, "Secret %s: %s; correct the bootstrap data", a.Secret, f.Message).From(err)
	}
	return err
}

// defaultTimeout is the default of spec.bootstrapTimeoutSeconds, for objects that were created without the defaults of the API.
const defaultTimeout = 10 * time.Minute

func (s snapshot) timeout() time.Duration {
	if n := s.Object.Spec.BootstrapTimeoutSeconds; n > 0 {
		return time.Duration(n) * time.Second
	}
	return defaultTimeout
}
