package componentconfig_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/controlplane/componentconfig"
)

// FuzzParseKeys: whatever a tenant's Secret has in the place of keys is refused, or is keys that are the same when they are written and read
// again, and of which a file is made where no name stands for two of them.
func FuzzParseKeys(f *testing.F) {
	key := func(fill byte) []byte { return bytes.Repeat([]byte{fill}, 32) }
	set := componentconfig.KeySet{Current: componentconfig.Keys{"secretbox": key(1), "aesgcm": key(2), "aescbc": key(3)}}
	for _, s := range []componentconfig.KeySet{set, set.WithoutFormer(), set.Rotated(), set.Rotated().WithoutFormer(), set.Rotated().Rotated()} {
		data := s.Data()
		current := bytes.Join([][]byte{data["secretbox"], data["aesgcm"], data["aescbc"]}, nil)
		former := bytes.Join([][]byte{data["former-secretbox"], data["former-aesgcm"], data["former-aescbc"]}, nil)
		f.Add(current, string(data["name"]), former, string(data["former-name"]), string(data["rewritten"]))
	}
	f.Add(key(1), "", []byte{}, "", "")
	f.Add(bytes.Repeat(key(1), 3), "key1", key(1), "KEY 1", "x")
	f.Fuzz(func(t *testing.T, current []byte, name string, former []byte, formerName, rewritten string) {
		data := map[string][]byte{"other": []byte("x"), "rewritten": []byte(rewritten)}
		divide(data, "", current, name)
		divide(data, "former-", former, formerName)
		got, err := componentconfig.ParseKeys(data)
		if err != nil {
			return
		}
		written := got.Data()
		again, err := componentconfig.ParseKeys(written)
		if diff := cmp.Diff(got, again); err != nil || diff != "" {
			t.Fatalf("other keys when they are read again: %v (-want +got):\n%s", err, diff)
		}
		for entry := range written {
			if _, ok := data[entry]; !ok {
				t.Errorf("an entry %q, which was not there", entry)
			}
		}
		if got.Rewritten != "" && got.Former != nil {
			t.Error("everything is rewritten, and there are keys of before")
		}
		checkFile(t, got)
	})
}

// divide puts keys into the data of a Secret under a prefix: 32 bytes each, the last one what is left.
func divide(data map[string][]byte, prefix string, keys []byte, name string) {
	for i, provider := range []string{"secretbox", "aesgcm", "aescbc"} {
		part := keys[min(i*32, len(keys)):]
		if i < 2 {
			part = part[:min(32, len(part))]
		}
		if len(part) > 0 {
			data[prefix+provider] = part
		}
	}
	if name != "" {
		data[prefix+"name"] = []byte(name)
	}
}

// checkFile checks that kube-apiserver finds each key by its name in the file.
func checkFile(t *testing.T, keys componentconfig.KeySet) {
	t.Helper()
	text, err := componentconfig.Encryption(&hostedv1.Encryption{}, keys)
	if err != nil {
		t.Fatal(err)
	}
	var file apiserverv1.EncryptionConfiguration
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	for _, resource := range file.Resources {
		for _, provider := range resource.Providers {
			if provider.Secretbox == nil {
				continue
			}
			names := map[string]bool{}
			for _, key := range provider.Secretbox.Keys {
				if key.Name == "" || names[key.Name] {
					t.Errorf("two keys, or none, are found by the name %q", key.Name)
				}
				names[key.Name] = true
			}
		}
	}
	if open := keys.Fingerprint(); !componentconfig.KeysSuffice(open, open, keys.Rewritten != "") {
		t.Errorf("what keys %s encrypt is not opened by them", open)
	}
}
