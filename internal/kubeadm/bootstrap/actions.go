package bootstrap

import (
	"fmt"

	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
)

// takeLock makes the Machine the one that initializes the control plane. The types in this file are the actions and
// reads that [decide] plans for a KubeadmConfig: act executes an action, and read a read (readX, listX). String is the
// text in the log and in the output of `slipway explain`.
type takeLock struct{ Cluster, Machine string }

func (a takeLock) String() string {
	return fmt.Sprintf("lock the initialization of Cluster %[2]s for Machine %[1]s: no other Machine holds the lock", a.Machine, a.Cluster)
}

// releaseLock deletes the lock of a Cluster. [decideLock] and [decideRelease] plan it.
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
	return fmt.Sprintf("create Secret %s: the control plane requires it, and no control plane object creates it", a.Purpose.SecretName(a.Cluster))
}

type readLock struct{}

func (readLock) String() string { return "the lock on the initialization of the control plane" }

// chooseToken writes a new random token to the spec.
type chooseToken struct{ Why string }

func (a chooseToken) String() string { return "generate a bootstrap token: " + a.Why }

type createToken struct{ ID string }

func (a createToken) String() string {
	return fmt.Sprintf("create bootstrap token %s: it does not exist in the workload cluster", a.ID)
}

// extendToken renews the expiration of a token to its full TTL. [refreshToken] plans it until the Machine has a Node.
type extendToken struct{ ID string }

func (a extendToken) String() string {
	return fmt.Sprintf("extend bootstrap token %s: the machine has not joined yet", a.ID)
}

type deleteToken struct{ Name string }

func (a deleteToken) String() string {
	return fmt.Sprintf("delete Secret %s: the machine that joins with it is deleted", a.Name)
}

// writeData writes the bootstrap data.
type writeData struct{ Name string }

func (a writeData) String() string {
	return fmt.Sprintf("write bootstrap data to Secret %s: all inputs are available", a.Name)
}

type ownData struct{ Name string }

func (a ownData) String() string {
	return fmt.Sprintf("adopt Secret %s: it has lost its owner", a.Name)
}

type readRenderInput struct{}

func (readRenderInput) String() string { return "the inputs of the bootstrap data" }

type readToken struct{ ID string }

func (q readToken) String() string { return "the state of bootstrap token " + q.ID }

type listLeftoverTokens struct{}

func (listLeftoverTokens) String() string { return "the remaining bootstrap tokens" }
