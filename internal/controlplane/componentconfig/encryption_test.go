package componentconfig_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/controlplane/componentconfig"
)

// Whatever is switched on or off, or chosen, what was written before is read: every key is in every list. The first
// provider of a list is that which writes.
func TestEncryption(t *testing.T) { // H8
	tests := map[string]struct {
		reason string
		of     *hostedv1.Encryption
		want   []string
	}{
		"on":      {"", &hostedv1.Encryption{}, []string{"secrets: secretbox aesgcm aescbc identity", "*.*: identity secretbox aesgcm aescbc"}},
		"another": {"", &hostedv1.Encryption{Provider: "aescbc"}, []string{"secrets: aescbc secretbox aesgcm identity", "*.*: identity secretbox aesgcm aescbc"}},
		"more":    {"", &hostedv1.Encryption{Resources: []string{"secrets", "configmaps"}}, []string{"secrets,configmaps: secretbox aesgcm aescbc identity", "*.*: identity secretbox aesgcm aescbc"}},
		"off":     {"plain text is written", nil, []string{"*.*: identity secretbox aesgcm aescbc"}},
		"aesgcm":  {"", &hostedv1.Encryption{Provider: "aesgcm"}, []string{"secrets: aesgcm secretbox aescbc identity", "*.*: identity secretbox aesgcm aescbc"}},
	}
	for name, test := range tests {
		text, err := componentconfig.Encryption(test.of, componentconfig.KeySet{Current: componentconfig.NewKeys()})
		if err != nil {
			t.Fatal(err)
		}
		var file struct {
			Resources []struct {
				Resources []string
				Providers []map[string]any
			}
		}
		if err := json.Unmarshal(text, &file); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range file.Resources {
			line := strings.Join(r.Resources, ",") + ":"
			for _, p := range r.Providers {
				for provider := range p {
					line += " " + provider
				}
			}
			got = append(got, line)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s: %s", name, test.reason, diff)
		}
	}
}

func TestKeys(t *testing.T) {
	keys, others := componentconfig.KeySet{Current: componentconfig.NewKeys()}, componentconfig.KeySet{Current: componentconfig.NewKeys()}
	parsed, err := componentconfig.ParseKeys(keys.Data())
	if err != nil || cmp.Diff(keys, parsed) != "" || parsed.Fingerprint() != keys.Fingerprint() {
		t.Errorf("%v, %v", parsed, err)
	}
	if keys.Fingerprint() == others.Fingerprint() || len(keys.Current["secretbox"]) != 32 {
		t.Error("two sets of keys are the same, or too short")
	}
	changed := componentconfig.KeySet{Current: componentconfig.Keys{
		"secretbox": keys.Current["secretbox"], "aesgcm": keys.Current["aesgcm"], "aescbc": others.Current["aescbc"],
	}}
	if changed.Fingerprint() == keys.Fingerprint() {
		t.Error("the fingerprint does not stand for all keys")
	}
	for name, tc := range map[string]struct {
		change func(map[string][]byte)
		says   string
	}{
		"missing":        {func(m map[string][]byte) { delete(m, "aescbc") }, "32 bytes each"},
		"short":          {func(m map[string][]byte) { m["aesgcm"] = m["aesgcm"][:16] }, "32 bytes each"},
		"long":           {func(m map[string][]byte) { m["secretbox"] = append(m["secretbox"], 0) }, "32 bytes each"},
		"former missing": {func(m map[string][]byte) { delete(m, "former-aescbc") }, "former-aescbc has 0"},
		"colon":          {func(m map[string][]byte) { m["name"] = []byte("a:b") }, `the name "a:b" of its keys`},
		"empty name":     {func(m map[string][]byte) { m["name"] = []byte("") }, `the name "" of its keys`},
		"same names":     {func(m map[string][]byte) { m["name"] = []byte("key1") }, "the same name, key1"},
	} {
		data := keys.Rotated().Data()
		tc.change(data)
		if _, err := componentconfig.ParseKeys(data); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	more := keys.Data()
	more["x"] = []byte("kind: Policy")
	if parsed, err := componentconfig.ParseKeys(more); err != nil || len(parsed.Current) != 3 {
		t.Errorf("what is no key is left out: %v, %v", parsed, err)
	}
}

// New keys encrypt, those of before decrypt, each by its name, until nothing is left of them.
func TestRotatedKeys(t *testing.T) { // H8
	keys := componentconfig.KeySet{Current: componentconfig.NewKeys()}
	names := func(k componentconfig.KeySet) string {
		text, err := componentconfig.Encryption(&hostedv1.Encryption{}, k)
		if err != nil {
			t.Fatal(err)
		}
		var file apiserverv1.EncryptionConfiguration
		if err := json.Unmarshal(text, &file); err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, key := range file.Resources[0].Providers[0].Secretbox.Keys {
			out = append(out, key.Name)
		}
		return strings.Join(out, " ")
	}
	both, err := componentconfig.ParseKeys(keys.Rotated().Data())
	if err != nil {
		t.Fatal(err)
	}
	first, second, _ := strings.Cut(both.Fingerprint(), ",")
	if second != keys.Fingerprint() || first == second || names(both) != string(both.Current["name"])+" key1" || both.Rewritten != "" {
		t.Errorf("%s: %s", both.Fingerprint(), names(both))
	}
	alone, err := componentconfig.ParseKeys(both.WithoutFormer().Data())
	if err != nil || alone.Fingerprint() != first || names(alone) != string(both.Current["name"]) || alone.Rewritten == "" {
		t.Errorf("%v, %v: %s", alone, err, names(alone))
	}
	again, err := componentconfig.ParseKeys(alone.Rotated().Data())
	if err != nil || again.Rewritten != "" || !strings.HasSuffix(names(again), " "+string(both.Current["name"])) {
		t.Errorf("%v, %v: %s", again, err, names(again))
	}
	if once, twice := both.WithoutFormer().Rewritten, both.WithoutFormer().Rewritten; once == twice || !strings.HasPrefix(once, first+"/") {
		t.Errorf("two rewritings have one mark: %s, %s", once, twice)
	}
	other := alone.Data()
	other["rewritten"] = []byte(second)
	if k, err := componentconfig.ParseKeys(other); err != nil || k.Rewritten != "" {
		t.Errorf("the mark is of other keys: %v, %v", k, err)
	}
}

// The same keys under another name open nothing: what is stored is found by the name.
func TestNameIsPartOfTheKeys(t *testing.T) {
	used := componentconfig.KeySet{Current: componentconfig.NewKeys()}.Rotated().WithoutFormer()
	data := used.Data()
	delete(data, "name")
	given, err := componentconfig.ParseKeys(data)
	if err != nil {
		t.Fatal(err)
	}
	if given.Fingerprint() == used.Fingerprint() || componentconfig.KeysSuffice(used.Fingerprint(), given.Fingerprint(), given.Rewritten != "") {
		t.Error("keys of another name count as the same keys")
	}
	if first := (componentconfig.KeySet{Current: componentconfig.NewKeys()}); first.Fingerprint() != withName(first, "key1").Fingerprint() {
		t.Error("the name that keys have without one makes others of them")
	}
}

func withName(k componentconfig.KeySet, name string) componentconfig.KeySet {
	named := maps.Clone(k.Current)
	named["name"] = []byte(name)
	return componentconfig.KeySet{Current: named}
}
