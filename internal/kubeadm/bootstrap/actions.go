package bootstrap

import (
	"fmt"

	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
)

// TakeLock makes the Machine the one that initializes the control plane.
type TakeLock struct{ Cluster, Machine string }

// String implements loop.Action.
func (a TakeLock) String() string {
	return fmt.Sprintf("let Machine %s initialize the control plane of Cluster %s: no other one does", a.Machine, a.Cluster)
}

// ReleaseLock deletes the lock on the initialization of the control plane.
type ReleaseLock struct{ Cluster, Why string }

// String implements loop.Action.
func (a ReleaseLock) String() string {
	return fmt.Sprintf("release the lock on the initialization of Cluster %s: %s", a.Cluster, a.Why)
}

// CreateAuthority creates the Secret of a certificate authority, or of the service account keys.
type CreateAuthority struct {
	Purpose secrets.Purpose
	Cluster string
}

// String implements loop.Action.
func (a CreateAuthority) String() string {
	return fmt.Sprintf("create Secret %s: the control plane needs it, and has no control plane object that would create it", a.Purpose.SecretName(a.Cluster))
}

// AskLock reads [Snapshot.Lock].
type AskLock struct{}

// String implements loop.Question.
func (AskLock) String() string { return "which Machine initializes the control plane" }

// ChooseToken writes a new random token to the spec.
type ChooseToken struct{ Why string }

// String implements loop.Action.
func (a ChooseToken) String() string { return "choose a bootstrap token: " + a.Why }

// CreateToken creates the Secret of the chosen token in the workload cluster.
type CreateToken struct{ ID string }

// String implements loop.Action.
func (a CreateToken) String() string {
	return fmt.Sprintf("create bootstrap token %s: the workload cluster has none of this ID", a.ID)
}

// ExtendToken renews the expiration of a token to its full TTL.
type ExtendToken struct{ ID string }

// String implements loop.Action.
func (a ExtendToken) String() string {
	return fmt.Sprintf("extend bootstrap token %s: the machine has not joined yet", a.ID)
}

// DeleteToken deletes the Secret of a token.
type DeleteToken struct{ Name string }

// String implements loop.Action.
func (a DeleteToken) String() string {
	return fmt.Sprintf("delete Secret %s: the machine it was made for goes", a.Name)
}

// WriteData writes the bootstrap data.
type WriteData struct{ Name string }

// String implements loop.Action.
func (a WriteData) String() string {
	return fmt.Sprintf("write bootstrap data into Secret %s: all it is made from is there", a.Name)
}

// OwnData restores the KubeadmConfig as the owner of the data Secret.
type OwnData struct{ Name string }

// String implements loop.Action.
func (a OwnData) String() string {
	return fmt.Sprintf("own Secret %s: it lost its owner, so it would stay behind", a.Name)
}

// AskMaterial reads [Snapshot.Material].
type AskMaterial struct{}

// String implements loop.Question.
func (AskMaterial) String() string { return "what bootstrap data is made from" }

// AskToken reads [Snapshot.Token].
type AskToken struct{ ID string }

// String implements loop.Question.
func (q AskToken) String() string { return "the state of bootstrap token " + q.ID }

// AskLeftovers reads [Snapshot.Leftovers].
type AskLeftovers struct{}

// String implements loop.Question.
func (AskLeftovers) String() string { return "which bootstrap tokens are left" }
