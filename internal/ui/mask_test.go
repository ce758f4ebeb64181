package ui

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/test/mirrortest"
)

func TestMaskCredentials(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		in     any
		want   any
	}{
		"field":          {"the name of a secret", map[string]any{"password": "hunter2", "user": "admin"}, map[string]any{"password": "***", "user": "admin"}},
		"number":         {"a number may be a PIN", map[string]any{"password": int64(1234)}, map[string]any{"password": "***"}},
		"switch":         {"not a value", map[string]any{"automountToken": true, "token": ""}, map[string]any{"automountToken": true, "token": ""}},
		"reference":      {"the name of a Secret is not secret", map[string]any{"secret": map[string]any{"name": "db", "key": "x"}, "dataSecretName": "m1"}, map[string]any{"secret": map[string]any{"name": "db", "key": "x"}, "dataSecretName": "m1"}},
		"list":           {"values of a secret", map[string]any{"secret": []any{"a", "b"}}, map[string]any{"secret": []any{"***", "***"}}},
		"variable":       {"a variable with the name of a secret", []any{map[string]any{"name": "dbPassword", "value": "x"}}, []any{map[string]any{"name": "dbPassword", "value": "***"}}},
		"object":         {"a variable that is an object", map[string]any{"name": "credentials", "value": map[string]any{"user": "u", "list": []any{"v"}}}, map[string]any{"name": "credentials", "value": map[string]any{"user": "***", "list": []any{"***"}}}},
		"other variable": {"an ordinary variable", map[string]any{"name": "region", "value": "eu"}, map[string]any{"name": "region", "value": "eu"}},
		"file":           {"a file with the name of a secret", map[string]any{"path": "/etc/api-token", "content": "x"}, map[string]any{"path": "/etc/api-token", "content": "***"}},
		"script":         {"an assignment in a text", map[string]any{"content": "echo 1\nDB_PASSWORD=hunter2\n"}, map[string]any{"content": "echo 1\nDB_PASSWORD=***\n"}},
		"mask in a text": {"a mask before the secret", map[string]any{"note": "password: ***hunter2"}, map[string]any{"note": "password: ***"}},
		"cut secret":     {"a text is shortened within a secret", []any{strings.Repeat("x ", maxMaskedText/2-5) + "abcdef.0123456789abcdef"}, []any{strings.Repeat("x ", maxMaskedText/2-5) + "…"}},
		"token":          {"the form of a bootstrap token", []any{"abcdef.0123456789abcdef"}, []any{"***"}},
		"plain":          {"text remains as it is", map[string]any{"note": " two lines\n\n", "id": "local://m"}, map[string]any{"note": " two lines\n\n", "id": "local://m"}},
		"schema":         {"the default of a secret", map[string]any{"apiToken": map[string]any{"type": "string", "default": "x"}}, map[string]any{"apiToken": map[string]any{"type": "string", "default": "***"}}},
	} {
		if diff := cmp.Diff(tc.want, maskCredentials(tc.in)); diff != "" {
			t.Errorf("%s: %s:\n%s", name, tc.reason, diff)
		}
	}
}

func TestYAMLHasNoCredentials(t *testing.T) {
	api := mirrortest.Start(t, mirrortest.Cluster("team", "good"))
	api.Put(t, `{apiVersion: infrastructure.slipway.dev/v1alpha1, kind: LocalMachine, metadata: {namespace: team, name: m, annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"old":"applied"}'}}, spec: {password: hunter2, files: [{content: "export API_TOKEN=s3cr3tvalue"}]}}`)
	body := page(t, testServer(t, api, nil), "/m/prod-script-alert-1-script/object/infrastructure.slipway.dev/LocalMachine/team/m", 200)
	for _, secret := range []string{"hunter2", "s3cr3tvalue", "applied"} {
		if strings.Contains(strings.ReplaceAll(body, "last applied", ""), secret) {
			t.Errorf("the page contains %q", secret)
		}
	}
	contains(t, "object", body, `<details id="yaml">`, "password: &#39;***&#39;", "API_TOKEN=***")
}
