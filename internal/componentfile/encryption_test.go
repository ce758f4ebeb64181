package componentfile_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/componentfile"
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
		text, err := componentfile.Encryption(test.of, componentfile.NewKeys())
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
	keys, others := componentfile.NewKeys(), componentfile.NewKeys()
	parsed, err := componentfile.ParseKeys(keys)
	if err != nil || cmp.Diff(keys, parsed) != "" || parsed.Fingerprint() != keys.Fingerprint() {
		t.Errorf("%v, %v", parsed, err)
	}
	if keys.Fingerprint() == others.Fingerprint() || len(keys["secretbox"]) != 32 {
		t.Error("two sets of keys are the same, or too short")
	}
	changed := componentfile.Keys{"secretbox": keys["secretbox"], "aesgcm": keys["aesgcm"], "aescbc": others["aescbc"]}
	if changed.Fingerprint() == keys.Fingerprint() {
		t.Error("the fingerprint does not stand for all keys")
	}
	for name, change := range map[string]func(map[string][]byte){
		"missing": func(m map[string][]byte) { delete(m, "aescbc") },
		"short":   func(m map[string][]byte) { m["aesgcm"] = m["aesgcm"][:16] },
		"long":    func(m map[string][]byte) { m["secretbox"] = append(m["secretbox"], 0) },
	} {
		data := map[string][]byte(componentfile.NewKeys())
		change(data)
		if _, err := componentfile.ParseKeys(data); err == nil || !strings.Contains(err.Error(), "32 bytes each") {
			t.Errorf("%s: %v", name, err)
		}
	}
	more := map[string][]byte{"secretbox": keys["secretbox"], "aesgcm": keys["aesgcm"], "aescbc": keys["aescbc"], "x": []byte("kind: Policy")}
	if parsed, err := componentfile.ParseKeys(more); err != nil || len(parsed) != 3 {
		t.Errorf("what is no key is left out: %v, %v", parsed, err)
	}
}
