package extension_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/sdk/extension"
)

type quota struct {
	Limit   int               `setting:"limit"`
	Small   uint8             `setting:"small"`
	Share   float64           `setting:"share"`
	Owner   string            `setting:"owner,required"`
	Strict  bool              `setting:"strict"`
	Window  time.Duration     `setting:"window"`
	Zones   []string          `setting:"zones"`
	Weights map[string]int    `setting:"weights"`
	Gateway netip.Addr        `setting:"gateway"`
	Most    *int32            `setting:"most"`
	Absent  *int32            `setting:"absent"`
	Rest    map[string]string `setting:",rest"`
	Ignored string
}

func requestWith(settings map[string]string) *hooksv1.BeforeClusterCreateRequest {
	return &hooksv1.BeforeClusterCreateRequest{CommonRequest: hooksv1.CommonRequest{Settings: settings}}
}

// RT-04, RT-23: settings are read into typed fields; a field keeps its default where nothing is set.
func TestReadSettings(t *testing.T) {
	in := requestWith(map[string]string{
		"limit": "7", "small": "255", "share": "0.5", "owner": "team-a", "strict": "true", "window": "1m30s", "zones": "[a, b]",
		"weights": `{"a": 1}`, "gateway": "192.0.2.1", "most": "3", "other": "x",
	})
	got := quota{Limit: 1, Ignored: "mine"}
	if err := extension.ReadSettings(in, &got); err != nil {
		t.Fatal(err)
	}
	want := quota{
		Limit: 7, Small: 255, Share: .5, Owner: "team-a", Strict: true, Window: 90 * time.Second, Zones: []string{"a", "b"},
		Weights: map[string]int{"a": 1}, Gateway: netip.MustParseAddr("192.0.2.1"), Most: new(int32(3)),
		Rest: map[string]string{"other": "x"}, Ignored: "mine",
	}
	if d := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if _, kept := in.Settings["limit"]; !kept {
		t.Error("the request was changed")
	}
	defaults := quota{Limit: 20, Zones: []string{"z"}}
	if err := extension.ReadSettings(requestWith(map[string]string{"owner": ""}), &defaults); err != nil || defaults.Limit != 20 || defaults.Zones[0] != "z" {
		t.Errorf("got %+v, %v", defaults, err)
	}
}

// RT-23: all that is wrong with settings is said at once, by key, and never with a value, which may be secret.
func TestReadSettingsRefuses(t *testing.T) {
	type strict struct {
		Limit int  `setting:"limit,required"`
		On    bool `setting:"on"`
	}
	type own struct {
		Token secret `setting:"token"`
	}
	cases := map[string]struct {
		reason   string
		settings map[string]string
		into     any
		want     []string
	}{
		"number":   {"a text is no number", map[string]string{"limit": "s3cr3t"}, &strict{}, []string{`setting "limit": the value is not a whole number of int`}},
		"all":      {"all at once", map[string]string{"on": "s3cr3t"}, &strict{}, []string{`setting "limit" is required`, `setting "on": the value is not true or false`}},
		"unknown":  {"a typing error is seen", map[string]string{"limit": "1", "limits": "s3cr3t"}, &strict{}, []string{`setting "limits" is unknown; known are: limit, on`}},
		"range":    {"a number fits its field", map[string]string{"small": "256", "owner": ""}, &quota{}, []string{`setting "small": the value is not a whole number of uint8`}},
		"duration": {"a number without a unit", map[string]string{"window": "5", "owner": ""}, &quota{}, []string{`"window": the value is not a duration such as 1m30s`}},
		"yaml":     {"YAML of another type", map[string]string{"zones": "s3cr3t", "owner": ""}, &quota{}, []string{`"zones": the value is not YAML or JSON of []string`}},
		"pointer":  {"an optional number is a number", map[string]string{"most": "s3cr3t", "owner": ""}, &quota{}, []string{`"most": the value is not a whole number of int32`}},
		"own":      {"a type that reads itself says what it wants", map[string]string{"token": "s3cr3t"}, &own{}, []string{`setting "token": want a token`}},
		"time": {"the error of another type may repeat the value", map[string]string{"at": "s3cr3t"}, &struct {
			At time.Time `setting:"at"`
		}{}, []string{`setting "at": the value is not what time.Time reads`}},
		"none known": {"no setting at all", map[string]string{"a": ""}, &struct{}{}, []string{`"a" is unknown; there are none`}},
		"no struct":  {"a mistake of the author", nil, new(int), []string{"not into *int"}},
		"nil":        {"a mistake of the author", nil, (*strict)(nil), []string{"a pointer to a struct"}},
		"hidden": {"a mistake of the author", nil, &struct {
			a int `setting:"a"`
		}{}, []string{"is not exported"}},
		"tag": {"a mistake of the author", nil, &struct {
			A int `setting:"a,often"`
		}{}, []string{`has the tag setting:"a,often", which says nothing`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := extension.ReadSettings(requestWith(tc.settings), tc.into)
			if err == nil {
				t.Fatalf("%s: no error", tc.reason)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %q is not in %q", tc.reason, want, err)
				}
			}
			if strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("the value is in the error: %v", err)
			}
		})
	}
}

type secret string

func (*secret) UnmarshalText([]byte) error { return errors.New("want a token") }
