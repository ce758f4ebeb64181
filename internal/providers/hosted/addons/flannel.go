package addons

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/config/addons/flannel"
	"github.com/slipwayhq/slipway/internal/kube"
)

// writerName names the field manager of what this package itself applies.
const writerName = "addons"

// applyFlannel installs the network. It reaches the API server by its address: the network has to be there before
// anything like a Service is.
func applyFlannel(ctx context.Context, access *rest.Config, p Params) error {
	objects, err := flannel.Objects(flannel.Params{
		PodCIDR: ipv4Of(p.PodCIDR), ImageRepository: p.ImageRepository, APIServerHost: p.Host, APIServerPort: int(p.Port),
	})
	if err != nil {
		return err
	}
	c, err := client.New(access, client.Options{})
	if err != nil {
		return fmt.Errorf("connecting to the workload cluster: %w", err)
	}
	writer := kube.NewWriter(c, writerName)
	for i := range objects {
		if err := writer.Apply(ctx, nil, &objects[i]); err != nil {
			return err
		}
	}
	return nil
}

// ipv4Of is the IPv4 range among comma-separated ones; where there is none, all of them, which flannel refuses.
func ipv4Of(ranges string) string {
	for r := range strings.SplitSeq(ranges, ",") {
		if p, err := netip.ParsePrefix(r); err == nil && p.Addr().Is4() {
			return r
		}
	}
	return ranges
}
