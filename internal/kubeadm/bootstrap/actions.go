package bootstrap

import (
	"fmt"

	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
)

// takeLock makes the Machine the one that initializes the control plane.
type takeLock struct{ Cluster, Machine string }

func (a takeLock) String() string {
	return fmt.Sprintf("let Machine %s initialize the control plane of Cluster %s: no other one does", a.Machine, a.Cluster)
}

// releaseLock deletes the lock on the initialization of the control plane.
type releaseLock struct{ Cluster, Why string }

func (a releaseLock) String() string {
	return fmt.Sprintf("release the lock on the initialization of Cluster %s: %s", a.Cluster, a.Why)
}

// createAuthority creates the Secret of a certificate authority, or of the service account keys.
type createAuthority struct {
	Purpose secrets.Purpose
	Cluster string
}

func (a createAuthority) String() string {
	return fmt.Sprintf("create Secret %s: the control plane needs it, and has no control plane object that would create it", a.Purpose.SecretName(a.Cluster))
}

// readLock reads [Snapshot.Lock].
type readLock struct{}

func (readLock) String() string { return "which Machine initializes the control plane" }

// chooseToken writes a new random token to the spec.
type chooseToken struct{ Why string }

func (a chooseToken) String() string { return "choose a bootstrap token: " + a.Why }

// createToken creates the Secret of the chosen token in the workload cluster.
type createToken struct{ ID string }

func (a createToken) String() string {
	return fmt.Sprintf("create bootstrap token %s: the workload cluster has none of this ID", a.ID)
}

// extendToken renews the expiration of a token to its full TTL.
type extendToken struct{ ID string }

func (a extendToken) String() string {
	return fmt.Sprintf("extend bootstrap token %s: the machine has not joined yet", a.ID)
}

// deleteToken deletes the Secret of a token.
type deleteToken struct{ Name string }

func (a deleteToken) String() string {
	return fmt.Sprintf("delete Secret %s: the machine it was made for goes", a.Name)
}

// writeData writes the bootstrap data.
type writeData struct{ Name string }

func (a writeData) String() string {
	return fmt.Sprintf("write bootstrap data into Secret %s: all it is made from is there", a.Name)
}

// ownData restores the KubeadmConfig as the owner of the data Secret.
type ownData struct{ Name string }

func (a ownData) String() string {
	return fmt.Sprintf("own Secret %s: it has no owner that deletes it", a.Name)
}

// readRenderInput reads [Snapshot.Material].
type readRenderInput struct{}

func (readRenderInput) String() string { return "what bootstrap data is made from" }

// readToken reads [Snapshot.Token].
type readToken struct{ ID string }

func (q readToken) String() string { return "the state of bootstrap token " + q.ID }

// listLeftoverTokens reads [Snapshot.Leftovers].
type listLeftoverTokens struct{}

func (listLeftoverTokens) String() string { return "which bootstrap tokens are left" }
