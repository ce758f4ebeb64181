package processconfig

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"path/filepath"

	"k8s.io/apimachinery/pkg/util/validation/field"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/controlplane/componentconfig"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/uidisolation"
	"github.com/slipwayhq/slipway/internal/fault"
)

// ReasonInvalid is the reason of the fault for an invalid configuration.
const ReasonInvalid = "ControlPlaneConfigInvalid"

// Defaults of Config.
const (
	DefaultServiceDomain   = "cluster.local"
	defaultCertificateDays = 365
)

// Config configures the process of a hosted control plane. The HostedControlPlane controller computes it, the
// supervisor or a Secret stores it as config.json, and the process reads it. A changed JSON encoding changes
// [Config.Hash] and restarts all control planes.
type Config struct {
	Cluster string `json:"cluster"` // name of the Cluster
	Version string `json:"version"` // Kubernetes version, "v1.36.3"
	// Endpoint is the address and port of the API server for nodes and clients. The API server listens there,
	// and the address need not exist yet.
	Endpoint string `json:"endpoint"`
	// Everywhere makes the API server listen at all addresses with the port of the endpoint, which forwards
	// to it from elsewhere, like a Service to a Pod.
	Everywhere bool `json:"everywhere,omitempty"`
	// Names are further host names and addresses for the serving certificate.
	Names []string `json:"names,omitempty"`

	ServiceCIDRs  []string `json:"serviceCIDRs"`
	PodCIDRs      []string `json:"podCIDRs"`
	ServiceDomain string   `json:"serviceDomain,omitempty"` // default DefaultServiceDomain

	// CertificateDays is the validity of leaf certificates. Default defaultCertificateDays.
	CertificateDays int `json:"certificateDays,omitempty"`
	// Authorities is a fingerprint of the CA files. A change restarts the process.
	Authorities string `json:"authorities,omitempty"`

	// Flags that are appended to Slipway's flags, as "--name=value". Package
	// componentconfig defines the valid flags.
	APIServer         []string `json:"apiServer,omitempty"`
	ControllerManager []string `json:"controllerManager,omitempty"`
	Scheduler         []string `json:"scheduler,omitempty"`
	Etcd              []string `json:"etcd,omitempty"`

	// Security contains the settings that kube-apiserver reads from files.
	Security hostedv1.Security `json:"security,omitzero"`
	// EncryptionKeys is the fingerprint of the keys in the PKI directory with which data in etcd is or was
	// encrypted. Empty means that there are none.
	EncryptionKeys string `json:"encryptionKeys,omitempty"`
	// EncryptionMark marks that all data encrypted with other keys was rewritten with the first key; see
	// [Data.Rewritten].
	EncryptionMark string `json:"encryptionMark,omitempty"`
	// Restore is the ID of the restore that must be completed. Empty means that there never was one.
	Restore string `json:"restore,omitempty"`
	// RunMode limits the process to some components: RunEtcdOnly or RunOnLoopback. Empty means no limit.
	RunMode string `json:"only,omitempty"`
}

// Values of [Config.RunMode].
const (
	// RunEtcdOnly runs etcd alone, on its socket.
	RunEtcdOnly = "etcd"
	// RunOnLoopback runs all components, but the API server does not listen at the endpoint.
	RunOnLoopback = "loopback"
)

// Validate returns a fault of kind Invalid for the first problem. The controller, the supervisor and the process check
// it, because the file may be older than the admission rules.
func (c Config) Validate() error {
	if c.Cluster == "" || c.Version == "" {
		return fault.New(fault.Invalid, ReasonInvalid, "a control plane needs the name of its cluster and a Kubernetes version")
	}
	if c.RunMode != "" && c.RunMode != RunEtcdOnly && c.RunMode != RunOnLoopback {
		return fault.New(fault.Invalid, ReasonInvalid, "a control plane cannot run %q only", c.RunMode)
	}
	if _, err := c.Address(); err != nil {
		return err
	}
	for what, ranges := range map[string][]string{"Service": c.ServiceCIDRs, "Pod": c.PodCIDRs} {
		if len(ranges) == 0 || len(ranges) > 2 {
			return fault.New(fault.Invalid, ReasonInvalid, "a control plane needs one %s address range, or one of each IP family", what)
		}
		for _, r := range ranges {
			if _, err := netip.ParsePrefix(r); err != nil {
				return fault.New(fault.Invalid, ReasonInvalid, "%s address range %q is not a range like 10.128.0.0/16", what, r)
			}
		}
	}
	if err := c.validateFlags(); err != nil {
		return err
	}
	return c.validateSecurity()
}

// validateSecurity rejects settings with which kube-apiserver would not start.
func (c Config) validateSecurity() error {
	if c.Security.Encryption != nil && c.EncryptionKeys == "" {
		return fault.New(fault.Invalid, ReasonInvalid, "encryption needs keys")
	}
	if problems := componentconfig.Problems(c.Security, field.NewPath("spec"), c.Issuer()); len(problems) > 0 {
		return fault.New(fault.Invalid, ReasonInvalid, "%s", problems[0].Error())
	}
	return nil
}

// validateFlags rejects the first flag that the component may not have, because the configuration file may be
// older than the admission rules.
func (c Config) validateFlags() error {
	for _, component := range []struct {
		name  componentconfig.Component
		flags []string
	}{
		{componentconfig.APIServer, c.APIServer}, {componentconfig.ControllerManager, c.ControllerManager},
		{componentconfig.Scheduler, c.Scheduler}, {componentconfig.Etcd, c.Etcd},
	} {
		for _, f := range component.flags {
			name, value := componentconfig.SplitFlag(f)
			if problem := componentconfig.FlagProblem(component.name, name, value); problem != "" {
				return fault.New(fault.Invalid, ReasonInvalid, "%s", problem)
			}
		}
	}
	return nil
}

// Address parses Endpoint, whose host must be an IP address. Whether this machine has the address is only known when
// the API server listens.
func (c Config) Address() (netip.AddrPort, error) {
	a, err := netip.ParseAddrPort(c.Endpoint)
	switch valid := err == nil && a.Port() != 0; {
	case !valid && c.Everywhere:
		return netip.AddrPort{}, fault.New(fault.Invalid, ReasonInvalid, "control plane endpoint %q must be an IP address and a port, for example 203.0.113.1:6443", c.Endpoint)
	case !valid:
		return netip.AddrPort{}, fault.New(fault.Invalid, ReasonInvalid,
			"control plane endpoint %q must be an IP address of this machine and a port, for example 172.31.0.1:6443", c.Endpoint)
	}
	return a, nil
}

// Domain returns ServiceDomain or its default. The serving certificate of the API server contains it.
func (c Config) Domain() string {
	if c.ServiceDomain == "" {
		return DefaultServiceDomain
	}
	return c.ServiceDomain
}

// Issuer returns the issuer of ServiceAccount tokens. Existing tokens contain it, so its form must not change.
func (c Config) Issuer() string { return "https://kubernetes.default.svc." + c.Domain() }

// Hash identifies the configuration. A process with another hash must be restarted. The supervisor and package hosted
// compare it with [Run].
func (c Config) Hash() string {
	data, err := json.Marshal(c)
	if err != nil { // strings and numbers can always be encoded
		panic(err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:12])
}

// Save writes the configuration to path. The supervisor and [Delivery.Receive] call it.
func (c Config) Save(path string) error {
	return datadir.WriteJSON(path, c)
}

// Load reads and validates a configuration. The process of the control plane and the supervisor call it.
func Load(path string) (Config, error) {
	data, err := uidisolation.ReadTrusted(filepath.Split(path))
	if err != nil {
		return Config{}, err
	}
	var c Config
	if err := json.Unmarshal(data, &c); err != nil {
		return Config{}, fmt.Errorf("read %s: %w", path, err)
	}
	return c, c.Validate()
}
