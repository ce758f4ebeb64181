package infrastructure

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// ReasonBootstrapData is the reason of the wait for bootstrap data. Package rootcause has a remedy for it.
const ReasonBootstrapData = "WaitingForBootstrapData"

// WaitForBootstrapData adds a wait for the bootstrap data of a machine in the Cluster to the plan of a LocalMachine, a
// LocalMachinePool or an SSHMachine. on is the Machine or MachinePool that names the Secret. The Cluster is nil if it
// is unknown. The fields are defined by Cluster API's bootstrap contract. The decide functions of packages
// local/machine, local/machinepool and ssh/machines call it.
func WaitForBootstrapData(p *reconciler.Plan, on reconciler.Subject, c *clusterv1.Cluster, b clusterv1.Bootstrap) {
	field := "spec.bootstrap.dataSecretName"
	switch {
	case c == nil:
		field = ""
	case !isInitialized(c):
		on, field = reconciler.Subject{Kind: "Cluster", Name: c.Name}, "status.initialization.controlPlaneInitialized"
	case b.ConfigRef.IsDefined():
		on, field = reconciler.Subject{Kind: b.ConfigRef.Kind, Name: b.ConfigRef.Name}, "status.dataSecretName"
	case on.Kind == "MachinePool":
		field = "spec.template.spec.bootstrap.dataSecretName"
	}
	p.WaitFor(ReasonBootstrapData, "%s", bootstrapDataMessage(c, b)).For(on.Kind, on.Name).ToChange(field)
}

func isInitialized(c *clusterv1.Cluster) bool {
	return ptr.Deref(c.Status.Initialization.ControlPlaneInitialized, false)
}

// bootstrapDataMessage returns the message about the missing bootstrap data of a machine. The Cluster is nil if it
// is unknown.
func bootstrapDataMessage(c *clusterv1.Cluster, b clusterv1.Bootstrap) string {
	switch {
	case c == nil:
		return "Waiting for the Cluster to exist: bootstrap data needs its control plane"
	case !isInitialized(c):
		return "Waiting for the control plane of Cluster " + c.Name + " to be initialized: bootstrap data needs it"
	case b.ConfigRef.IsDefined():
		return "Waiting for " + b.ConfigRef.Kind + " " + b.ConfigRef.Name + " to create the bootstrap data Secret"
	}
	return "Waiting for spec.bootstrap.dataSecretName to be set"
}

// ReadBootstrapData reads the bootstrap data and its format from a Secret. The format is empty if the Secret has none.
// An unusable Secret is a fault. The LocalMachine and SSHMachine controllers call it when they bootstrap a machine.
func ReadBootstrapData(ctx context.Context, secrets client.Reader, key client.ObjectKey) (value []byte, format string, err error) {
	secret := &corev1.Secret{}
	err = secrets.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return nil, "", fault.New(fault.Transient, "BootstrapSecretAbsent", "Secret %s with the bootstrap data does not exist", key.Name)
	}
	if err != nil {
		return nil, "", fmt.Errorf("reading Secret %s: %w", key, err)
	}
	value, ok := secret.Data["value"]
	if !ok {
		return nil, "", fault.New(fault.Invalid, "BootstrapSecretInvalid", "Secret %s with the bootstrap data has no key \"value\"", key.Name)
	}
	return value, string(secret.Data["format"]), nil
}
