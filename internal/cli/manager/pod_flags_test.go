package manager

import (
	"testing"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/manager"
)

func TestPodsFlags(t *testing.T) {
	inPod := map[string]string{"POD_NAME": "m-0", "POD_NAMESPACE": "home"}
	for name, test := range map[string]struct {
		why   string
		args  []string
		env   map[string]string
		valid bool
		on    bool
	}{
		"off":        {"processes of this machine", nil, nil, true, false},
		"on":         {"", []string{"--control-plane-pods"}, inPod, true, true},
		"ports":      {"", []string{"--control-plane-pods", "--control-plane-service-type=NodePort", "--control-plane-service-host=203.0.113.1"}, inPod, true, true},
		"empty host": {"a release has the variable", []string{"--control-plane-pods", "--control-plane-service-host="}, inPod, true, true},
		"none is meant": {"the defaults of a release", []string{"--control-plane-pods", "--control-plane-service-host=-", "--control-plane-storage-class=-"}, inPod,
			true, true},
		"not in a Pod": {"there is no image", []string{"--control-plane-pods"}, nil, false, false},
		"type":         {"", []string{"--control-plane-pods", "--control-plane-service-type=ExternalName"}, inPod, false, false},
		"host of a balancer": {"it says its address itself", []string{"--control-plane-pods", "--control-plane-service-host=203.0.113.1"}, inPod,
			false, false},
		"name":        {"certificates and the API server's own Service need an address", []string{"--control-plane-pods", "--control-plane-service-type=NodePort", "--control-plane-service-host=example.com"}, inPod, false, false},
		"size":        {"", []string{"--control-plane-pods", "--control-plane-volume-size=big"}, inPod, false, false},
		"nothing big": {"", []string{"--control-plane-pods", "--control-plane-volume-size=0"}, inPod, false, false},
	} {
		var p podFlags
		f := pflag.NewFlagSet("test", pflag.ContinueOnError)
		p.bind(f)
		if err := f.Parse(test.args); err != nil {
			t.Fatal(err)
		}
		var cfg manager.Config
		err := p.complete(term.Env{Getenv: func(name string) string { return test.env[name] }}, &cfg)
		if test.valid != (err == nil) || err != nil && fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s (%s): %v", name, test.why, err)
		}
		if got := cfg.Host.Pods; test.valid && (got.Namespace == "home" && got.Pod == "m-0" && got.Service.Type != corev1.ServiceType("")) != test.on {
			t.Errorf("%s (%s): %+v", name, test.why, got)
		}
		if got := cfg.Host.Pods; err == nil && (got.Volume.Class != "" || got.Service.Host.IsValid() != (name == "ports")) {
			t.Errorf("%s (%s): %+v", name, test.why, got)
		}
	}
}
