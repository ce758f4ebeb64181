package processconfig_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/fault"
)

func config() processconfig.Config {
	return processconfig.Config{
		Cluster: "demo", Version: "v1.36.3", Endpoint: "172.31.0.1:6443",
		ServiceCIDRs: []string{"172.31.112.0/20"}, PodCIDRs: []string{"172.31.128.0/17"},
	}
}

func TestValidate(t *testing.T) {
	tests := map[string]struct {
		change func(*processconfig.Config)
		says   string // empty: valid
	}{
		"good":             {func(*processconfig.Config) {}, ""},
		"dual stack":       {func(c *processconfig.Config) { c.PodCIDRs = append(c.PodCIDRs, "fd00::/56") }, ""},
		"no cluster":       {func(c *processconfig.Config) { c.Cluster = "" }, "name of its cluster"},
		"no version":       {func(c *processconfig.Config) { c.Version = "" }, "Kubernetes version"},
		"host name":        {func(c *processconfig.Config) { c.Endpoint = "demo:6443" }, "IP address of this machine"},
		"no port":          {func(c *processconfig.Config) { c.Endpoint = "172.31.0.1:0" }, "172.31.0.1:6443"},
		"no Pod range":     {func(c *processconfig.Config) { c.PodCIDRs = nil }, "Pod address range"},
		"flag of the host": {func(c *processconfig.Config) { c.APIServer = []string{"--etcd-servers-overrides=/secrets#unix:///x"} }, "--etcd-servers-overrides of kube-apiserver cannot be set"},
		"file":             {func(c *processconfig.Config) { c.ControllerManager = []string{"--root-ca-file=/x"} }, "--root-ca-file"},
		"folder":           {func(c *processconfig.Config) { c.Etcd = []string{"--wal-dir=/x"} }, "--wal-dir"},
		"configuration":    {func(c *processconfig.Config) { c.Scheduler = []string{"--config=/x"} }, "--config"},
		"issuer":           {func(c *processconfig.Config) { c.Security.Authentication = issuer("https://issuer.example") }, ""},
		"plain HTTP":       {func(c *processconfig.Config) { c.Security.Authentication = issuer("http://issuer.example") }, "spec.authentication.jwt[0].issuer.url"},
		"own issuer": {func(c *processconfig.Config) {
			c.ServiceDomain, c.Security.Authentication = "x.example", issuer("https://kubernetes.default.svc.x.example")
		}, "disallowed issuers"},
		"audit": {func(c *processconfig.Config) {
			c.Security.Audit = &hostedv1.Audit{Policy: &hostedv1.AuditPolicy{Rules: []hostedv1.AuditRule{{Level: "x"}}}}
		}, "spec.audit.policy.rules[0].level"},
		"socket of a KMS": {func(c *processconfig.Config) {
			c.EncryptionKeys, c.Security.Encryption = "k", &hostedv1.Encryption{Provider: "kms"}
		}, "spec.encryption.provider"},
		"no keys":         {func(c *processconfig.Config) { c.Security.Encryption = &hostedv1.Encryption{} }, "needs keys"},
		"no range at all": {func(c *processconfig.Config) { c.ServiceCIDRs = []string{"x"} }, `"x" is not a range`},
	}
	for name, test := range tests {
		c := config()
		test.change(&c)
		err := c.Validate()
		switch {
		case test.says == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case test.says != "" && (fault.KindOf(err) != fault.Invalid || err == nil || !strings.Contains(err.Error(), test.says)):
			t.Errorf("%s: got %v, want %q", name, err, test.says)
		}
	}
}

func issuer(url string) *hostedv1.Authentication {
	prefix := ""
	return &hostedv1.Authentication{JWT: []hostedv1.JWTAuthenticator{{
		Issuer:        hostedv1.JWTIssuer{URL: url, Audiences: []string{"demo"}},
		ClaimMappings: hostedv1.ClaimMappings{Username: hostedv1.PrefixedClaimOrExpression{Claim: "sub", Prefix: &prefix}},
	}}}
}

// A configuration without settings that came later has the hash it had: what runs with it is not restarted.
func TestHashOfWhatWasThereBefore(t *testing.T) {
	c := config()
	text, err := json.Marshal(c)
	if err != nil || strings.Contains(string(text), "security") || strings.Contains(string(text), "encryption") {
		t.Errorf("%v: %s", err, text)
	}
	c.Security.Audit = &hostedv1.Audit{}
	if c.Hash() == config().Hash() {
		t.Error("the hash does not stand for what kube-apiserver reads from files")
	}
}

func TestSaveAndLoad(t *testing.T) {
	f := processconfig.Folder(t.TempDir())
	c := config()
	c.APIServer = []string{"--v=2"}
	if err := c.Save(f.Config()); err != nil {
		t.Fatal(err)
	}
	got, err := processconfig.Load(f.Config())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, got); diff != "" {
		t.Error(diff)
	}
	if got.Hash() != c.Hash() || c.Hash() == config().Hash() {
		t.Error("the hash does not stand for the content")
	}
	if err := os.WriteFile(f.Config(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := processconfig.Load(f.Config()); err == nil {
		t.Error("half a file was read")
	}
}

// What a process says about itself counts only while that process lives.
func TestReadRun(t *testing.T) {
	f := processconfig.Folder(filepath.Join(t.TempDir(), "demo"))
	if _, alive, err := f.ReadRun(); alive || err != nil {
		t.Fatalf("nothing there: alive %v, %v", alive, err)
	}
	run := processconfig.Run{PID: os.Getpid(), Version: "v1.36.3", Config: "c", Local: "127.0.0.1:1"}
	if err := f.WriteRun(run); err != nil {
		t.Fatal(err)
	}
	if _, alive, err := f.ReadRun(); alive || err != nil {
		t.Errorf("left by a process that is gone: alive %v, %v", alive, err)
	}
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	lock, _, _, err := datadir.Acquire(f.Lock(), datadir.Holder{PID: os.Getpid(), Since: since})
	if err != nil {
		t.Fatal(err)
	}
	if got, alive, err := f.ReadRun(); !alive || err != nil || cmp.Diff(run, got) != "" {
		t.Errorf("alive %v, %v: %s", alive, err, cmp.Diff(run, got))
	}
	run.PID++
	if err := f.WriteRun(run); err != nil {
		t.Fatal(err)
	}
	want := processconfig.Run{PID: os.Getpid(), Since: since}
	if got, alive, err := f.ReadRun(); !alive || err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("written by an earlier process: alive %v, %v: %s", alive, err, cmp.Diff(want, got))
	}
	if err := lock.Release(); err != nil {
		t.Error(err)
	}
}
