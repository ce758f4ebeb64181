package admission

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
)

// IA-09
func TestIPAM(t *testing.T) {
	pool := ipamv1.IPPoolReference{APIGroup: "example.org", Kind: "Pool", Name: "p"}
	address := func(ip string, prefix *int32, gateway string) *ipamv1.IPAddress {
		return &ipamv1.IPAddress{Spec: ipamv1.IPAddressSpec{Address: ip, Prefix: prefix, Gateway: gateway, PoolRef: pool}}
	}
	claim := func(pool ipamv1.IPPoolReference) *ipamv1.IPAddressClaim {
		return &ipamv1.IPAddressClaim{Spec: ipamv1.IPAddressClaimSpec{PoolRef: pool}}
	}
	other := pool
	other.Name = "q"
	tests := map[string]struct {
		reason string
		req    Request
		want   []string
	}{
		"IPv4":         {reason: "valid", req: Request{New: address("10.0.0.4", new(int32(24)), "10.0.0.1")}},
		"IPv6":         {reason: "valid, without a gateway", req: Request{New: address("fd00::4", new(int32(64)), "")}},
		"zero prefix":  {reason: "0 is a prefix", req: Request{New: address("10.0.0.4", new(int32(0)), "")}},
		"no prefix":    {reason: "required", req: Request{New: address("10.0.0.4", nil, "")}, want: []string{"spec.prefix"}},
		"long prefix":  {reason: "IPv4 has 32 bits", req: Request{New: address("10.0.0.4", new(int32(33)), "")}, want: []string{"spec.prefix"}},
		"not an IP":    {reason: "no address", req: Request{New: address("10.0.0", new(int32(24)), "")}, want: []string{"spec.address"}},
		"bad gateway":  {reason: "no address", req: Request{New: address("10.0.0.4", new(int32(24)), "gw")}, want: []string{"spec.gateway"}},
		"unchanged":    {reason: "a write that changes nothing", req: Request{Old: address("x", nil, ""), New: address("x", nil, "")}},
		"changed":      {reason: "addresses stay", req: Request{Old: address("10.0.0.4", new(int32(24)), ""), New: address("10.0.0.5", new(int32(24)), "")}, want: []string{"spec"}},
		"no claim":     {reason: "nothing to compare with", req: Request{New: address("10.0.0.4", new(int32(24)), ""), Related: RelatedObjects{}}},
		"its claim":    {reason: "the pool of the claim", req: Request{New: address("10.0.0.4", new(int32(24)), ""), Related: RelatedObjects{Claim: claim(pool)}}},
		"other pool":   {reason: "the claim asks for another pool", req: Request{New: address("10.0.0.4", new(int32(24)), ""), Related: RelatedObjects{Claim: claim(other)}}, want: []string{"spec.poolRef"}},
		"claim":        {reason: "valid", req: Request{New: claim(pool)}},
		"claim moved":  {reason: "claims stay with their pool", req: Request{Old: claim(pool), New: claim(other)}, want: []string{"spec.poolRef"}},
		"claim on air": {reason: "a pool has a kind and a name", req: Request{New: claim(ipamv1.IPPoolReference{})}, want: []string{"spec.poolRef.kind", "spec.poolRef.name"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, problems(Validate(tt.req))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}
