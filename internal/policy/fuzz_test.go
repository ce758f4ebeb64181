package policy

import "testing"

// FuzzParse: whatever an operator writes is refused, or is a configuration that answers every question.
func FuzzParse(f *testing.F) {
	head := "apiVersion: " + apiVersion + "\nkind: " + kind + "\n"
	for _, text := range []string{
		"", head, head + "maxima: {replicas: 3}\n", head + "nodes: {mounts: [{path: /srv}]}\n", head + "networks: {ranges: [10.0.0.0/8]}\n",
		head + "management: {audit: {rules: [{level: Metadata}]}}\n", head + "no: such\n", "{", head + "snapshots: {folders: [/]}\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Parse(text)
		if err != nil {
			return
		}
		if c.DeniedReplicas(0) != "" {
			t.Errorf("%q denies no replicas at all", text)
		}
		_ = c.DeniedIssuer("https://issuer.example.org")
		if len(c.Sets()) == 0 {
			t.Errorf("%q leaves nothing that runs", text)
		}
	})
}
