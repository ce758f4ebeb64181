package hosts

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/infrastructure"
	"github.com/slipwayhq/slipway/internal/jobs"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
)

// snapshot is the input of decide.
type snapshot struct {
	Object *infrav1.SSHHost
	// Denied is the reason why the operator's configuration denies the host. Empty: it does not.
	Denied string
	// Machine is the SSHMachine in the claim. Nil if there is none with the claim ID.
	Machine *infrav1.SSHMachine
	// Adopter is the SSHMachine of the record on a host without a claim, as after a move or a restore. Nil if there is none.
	Adopter *infrav1.SSHMachine
	// Check is the last check of the host. Nil: there was none since the manager started.
	Check *hostCheck
	// Cleaning is the state of the job that cleans the host.
	Cleaning jobs.State
	// Nodes are the Nodes of the claim. Nil until they have been read.
	Nodes *nodeSearch
	// Versions are the Kubernetes versions of the bundles on the host by their digests.
	Versions map[string]string
	Now      time.Time
}

// observe reads the snapshot. The driver (package reconciler) calls it at the start of each reconciliation.
func (c *controller) observe(ctx context.Context, o *infrav1.SSHHost) (snapshot, error) {
	key := client.ObjectKeyFromObject(o)
	s := snapshot{Object: o, Denied: inventory.Denied(o, c.Policy), Check: c.checks.get(key), Cleaning: c.Jobs.StateFor(inventory.NamespaceOf(o), jobs.Key(kind, key)), Now: c.now()}
	c.nameBundles(&s)
	claim := o.Status.Claim
	if claim == nil {
		return s, c.readAdopter(ctx, &s)
	}
	m, err := infrastructure.ReadObject(ctx, c.client, claim.Namespace, claim.Name, &infrav1.SSHMachine{})
	if err != nil {
		return s, err
	}
	if m != nil && inventory.HasClaim(o, m) {
		s.Machine = m
	}
	return s, nil
}

// readAdopter reads the SSHMachine of the record on a host without a claim. The record is untrusted: the SSHMachine has to have
// its claim ID.
func (c *controller) readAdopter(ctx context.Context, s *snapshot) error {
	s.Adopter = nil
	if s.Object.Status.Claim != nil || s.Check == nil || s.Check.Record == nil {
		return nil
	}
	r := s.Check.Record
	if len(validation.IsDNS1123Label(r.Namespace)) > 0 || len(validation.IsDNS1123Subdomain(r.Name)) > 0 {
		return nil
	}
	m, err := infrastructure.ReadObject(ctx, c.client, r.Namespace, r.Name, &infrav1.SSHMachine{})
	if m != nil && m.Spec.ClaimID == r.ClaimID {
		s.Adopter = m
	}
	return err
}

func (c *controller) nameBundles(s *snapshot) {
	s.Versions = map[string]string{}
	if s.Check == nil || c.Bundles == nil {
		return
	}
	for _, digest := range s.Check.Facts.Bundles {
		s.Versions[digest] = c.Bundles.Version(digest)
	}
}

// readRequested checks the host or reads its Nodes. The driver calls it if decide requests a read, and then decide again.
func (c *controller) readRequested(ctx context.Context, s snapshot, request reconciler.ReadRequest) (snapshot, error) {
	if r, ok := request.(readNodes); ok {
		found, err := c.readNodes(ctx, r)
		s.Nodes = found
		return s, err
	}
	k, err := c.check(ctx, s.Object)
	if err != nil {
		return s, err
	}
	c.checks.put(client.ObjectKeyFromObject(s.Object), k)
	s.Check = &k
	c.nameBundles(&s)
	return s, c.readAdopter(ctx, &s)
}

// isConfirmed reports whether the claim was recorded on the host.
func (s snapshot) isConfirmed() bool {
	return inventory.IsConfirmed(s.Object) || s.hasOwnRecord()
}

// hasOwnRecord reports whether the record on the host is the record of the claim.
func (s snapshot) hasOwnRecord() bool {
	c := s.Object.Status.Claim
	return c != nil && s.Check != nil && s.Check.Record != nil && s.Check.Record.ClaimID == c.ClaimID
}

// isProvisioned reports whether the host is a node.
func (s snapshot) isProvisioned() bool {
	return s.Machine != nil && ptr.Deref(s.Machine.Status.Initialization.Provisioned, false)
}
