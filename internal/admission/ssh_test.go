package admission_test

import (
	"net/netip"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	sshv1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/admission"
	"github.com/slipwayhq/slipway/internal/policy"
)

const hostKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJnnRFQNt1i+p4mSXXdNbRJ2Hp9Lw2Dq4w0W6wVlF8cM root@host"

func sshHost(change func(*sshv1.SSHHost)) *sshv1.SSHHost {
	h := &sshv1.SSHHost{ObjectMeta: metav1.ObjectMeta{Namespace: "hosts", Name: "h"}}
	h.Spec.Address, h.Spec.HostKeys = "192.0.2.1", []string{hostKey}
	if change != nil {
		change(h)
	}
	return h
}

func TestSSHHost(t *testing.T) {
	restricted := policy.Default()
	restricted.Hosts.Ranges, restricted.Hosts.Namespaces = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, []string{"hosts"}
	many := map[string]string{}
	for i := range 33 {
		many[strings.Repeat("a", i+1)] = ""
	}
	for name, tc := range map[string]struct {
		change func(*sshv1.SSHHost)
		policy policy.Configuration
		want   string
	}{
		"good":         {nil, restricted, ""},
		"name":         {func(h *sshv1.SSHHost) { h.Spec.Address, h.Spec.NodeAddress = "a.example", "10.0.0.1" }, policy.Default(), ""},
		"name alone":   {func(h *sshv1.SSHHost) { h.Spec.Address = "a.example" }, policy.Default(), "spec.nodeAddress"},
		"name, ranges": {func(h *sshv1.SSHHost) { h.Spec.Address, h.Spec.NodeAddress = "a.example", "10.0.0.1" }, restricted, "hosts.ranges"},
		"metadata":     {func(h *sshv1.SSHHost) { h.Spec.Address = "169.254.169.254" }, restricted, "hosts.ranges"},
		"option":       {func(h *sshv1.SSHHost) { h.Spec.Address = "-oProxyCommand=x" }, policy.Default(), "spec.address"},
		"unspecified":  {func(h *sshv1.SSHHost) { h.Spec.Address = "::" }, policy.Default(), "spec.address"},
		"zone":         {func(h *sshv1.SSHHost) { h.Spec.Address = "fe80::1%eth0" }, policy.Default(), "spec.address"},
		"node address": {func(h *sshv1.SSHHost) { h.Spec.NodeAddress = "1.2.3" }, policy.Default(), "spec.nodeAddress"},
		"no key":       {func(h *sshv1.SSHHost) { h.Spec.HostKeys = []string{"ssh-ed25519 x"} }, policy.Default(), "spec.hostKeys[0]"},
		"two keys":     {func(h *sshv1.SSHHost) { h.Spec.HostKeys = []string{hostKey + "\n" + hostKey} }, policy.Default(), "spec.hostKeys[0]"},
		"options":      {func(h *sshv1.SSHHost) { h.Spec.HostKeys = []string{`command="x" ` + hostKey} }, policy.Default(), "spec.hostKeys[0]"},
		"jump": {func(h *sshv1.SSHHost) {
			h.Spec.Jump = &sshv1.SSHServer{Address: "10.0.0.1", HostKeys: []string{hostKey}}
		}, restricted, "spec.jump.address"},
		"jump key":  {func(h *sshv1.SSHHost) { h.Spec.Jump = &sshv1.SSHServer{Address: "192.0.2.2", HostKeys: []string{"x"}} }, restricted, "spec.jump.hostKeys[0]"},
		"namespace": {func(h *sshv1.SSHHost) { h.Namespace = "team-a" }, restricted, "metadata.namespace"},
		"selector": {func(h *sshv1.SSHHost) {
			h.Spec.OfferedTo = &metav1.LabelSelector{MatchLabels: map[string]string{"a b": ""}}
		}, policy.Default(), "spec.offeredTo"},
		"selector's size": {func(h *sshv1.SSHHost) { h.Spec.OfferedTo = &metav1.LabelSelector{MatchLabels: many} }, policy.Default(), "spec.offeredTo"},
		"authorities":     {func(h *sshv1.SSHHost) { h.Spec.Settings.AdditionalTrustedCAs = "-----BEGIN RSA PRIVATE KEY-----" }, policy.Default(), "additionalTrustedCAs"},
	} {
		got := admission.Validate(admission.Request{New: sshHost(tc.change), Policy: tc.policy})
		if text := got.Errors.ToAggregate(); (text == nil) != (tc.want == "") || text != nil && !strings.Contains(text.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, text, tc.want)
		}
	}
	// A configuration that became stricter does not prevent other changes.
	old := sshHost(func(h *sshv1.SSHHost) { h.Spec.Address = "10.0.0.1" })
	if got := admission.Validate(admission.Request{Old: old, New: old.DeepCopy(), Policy: restricted}); len(got.Errors) > 0 {
		t.Errorf("unchanged: %v", got.Errors)
	}
}

func TestSSHClusterAndMachine(t *testing.T) {
	restricted := policy.Default()
	restricted.Hosts.Endpoints = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	for host, want := range map[string]string{
		"192.0.2.9": "", "10.0.0.1": "hosts.endpoints", "lb.example": "hosts.endpoints", "0.0.0.0": "spec", "a b": "spec", "224.0.0.18": "spec",
	} {
		endpoint := clusterv1.APIEndpoint{Host: host, Port: 6443}
		c, ct := &sshv1.SSHCluster{}, &sshv1.SSHClusterTemplate{}
		c.Spec.ControlPlaneEndpoint, ct.Spec.Template.Spec.ControlPlaneEndpoint = endpoint, endpoint
		for _, r := range []admission.Request{{New: c, Policy: restricted}, {New: ct, Policy: restricted}} {
			if text := admission.Validate(r).Errors.ToAggregate(); (text == nil) != (want == "") || text != nil && !strings.Contains(text.Error(), want) {
				t.Errorf("%T with %s: %v, want %q", r.New, host, text, want)
			}
		}
	}
	restricted.Hosts.VirtualIPs = []policy.VirtualIPRange{{Range: netip.MustParsePrefix("10.0.0.0/24")}, {Range: netip.MustParsePrefix("224.0.0.0/3")}}
	for address, want := range map[string]string{
		"10.0.0.9": "", "10.0.1.1": "hosts.virtualIPs", "192.0.2.9": "hosts.virtualIPs", "::ffff:10.0.0.9": "hosts.virtualIPs", "224.0.0.18": "hosts.virtualIPs",
		"255.255.255.255": "hosts.virtualIPs", "lb.example": "spec.virtualIP", "10.0.0.9/24": "spec.virtualIP", "10.0.0.9 }": "spec.virtualIP", "10.0.0.9\n}": "spec.virtualIP",
		"": "",
	} {
		c, ct := &sshv1.SSHCluster{}, &sshv1.SSHClusterTemplate{}
		c.Spec.VirtualIP, ct.Spec.Template.Spec.VirtualIP = address, address
		for _, r := range []admission.Request{{New: c, Policy: restricted}, {New: ct, Policy: restricted}} {
			if text := admission.Validate(r).Errors.ToAggregate(); (text == nil) != (want == "") || text != nil && !strings.Contains(text.Error(), want) {
				t.Errorf("%T with virtual IP address %q: %v, want %q", r.New, address, text, want)
			}
			r.Policy = policy.Default()
			if text := admission.Validate(r).Errors.ToAggregate(); (text == nil) != (address == "") {
				t.Errorf("%T with virtual IP address %q, and no ranges: %v", r.New, address, text)
			}
		}
		// The controller sets the endpoint, which the ranges of endpoints need not contain. A stricter configuration does not prevent it.
		set := c.DeepCopy()
		set.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: address, Port: 6443}
		if errs := admission.Validate(admission.Request{Old: c, New: set}).Errors; address != "" && len(errs) > 0 {
			t.Errorf("the endpoint at %q: %v", address, errs)
		}
		set.Spec.ControlPlaneEndpoint.Port = 443
		if errs := admission.Validate(admission.Request{Old: c, New: set, Policy: restricted}).Errors; address != "" && len(errs) == 0 {
			t.Errorf("another port at %q", address)
		}
	}
	m, mt := &sshv1.SSHMachine{}, &sshv1.SSHMachineTemplate{}
	wrong := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}
	m.Spec.HostSelector, mt.Spec.Template.Spec.HostSelector = wrong, wrong
	for _, r := range []admission.Request{{New: m}, {New: mt}} {
		if errs := admission.Validate(r).Errors; len(errs) == 0 || !strings.Contains(errs[0].Field, "hostSelector.matchExpressions") {
			t.Errorf("%T: %v", r.New, errs)
		}
	}
	m.Spec, mt.Spec.Template.Spec = sshv1.SSHMachineSpec{}, sshv1.SSHMachineSpec{}
	m.Spec.Settings.AdditionalTrustedCAs, mt.Spec.Template.Spec.Settings.AdditionalTrustedCAs = "no certificate", "no certificate"
	for _, r := range []admission.Request{{New: m}, {New: mt}} {
		if errs := admission.Validate(r).Errors; len(errs) != 1 || !strings.HasSuffix(errs[0].Field, "settings.additionalTrustedCAs") {
			t.Errorf("%T: %v", r.New, errs)
		}
	}
	mt.Spec.Template.Spec = sshv1.SSHMachineSpec{HostSelector: wrong}
	external := &sshv1.SSHMachine{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{clusterv1.ManagedByAnnotation: ""}}}
	if errs := admission.Validate(admission.Request{Old: external, New: &sshv1.SSHMachine{}}).Errors; len(errs) != 1 {
		t.Errorf("the annotation managed-by was removed: %v", errs)
	}
	changed := mt.DeepCopy()
	changed.Spec.Template.Spec.HostSelector = nil
	if errs := admission.Validate(admission.Request{Old: mt, New: changed}).Errors; len(errs) != 1 {
		t.Errorf("a template was changed: %v", errs)
	}
}
