package up

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/hosttransfer"
	"github.com/slipwayhq/slipway/internal/kube"
)

// publishLocation writes the location of the data directory to a ConfigMap of the management cluster, at each start of
// `slipway up`. With it, "slipway move" finds out whether two management clusters run on the same host.
func publishLocation(ctx context.Context, admin *rest.Config, h *datadir.Handle, getenv func(string) string) error {
	location, err := hosttransfer.LocationOnHost(string(h.Dir), h.Instance, getenv)
	if err != nil {
		return err
	}
	c, err := client.New(admin, client.Options{})
	if err != nil {
		return err
	}
	writer := kube.NewWriter(c, "slipway-up")
	cm := &corev1.ConfigMap{}
	err = c.Get(ctx, client.ObjectKey{Namespace: hosttransfer.LocationNamespace, Name: hosttransfer.LocationName}, cm)
	if apierrors.IsNotFound(err) {
		cm.Namespace, cm.Name, cm.Data = hosttransfer.LocationNamespace, hosttransfer.LocationName, location.Data()
		return writer.Create(ctx, cm)
	}
	if err != nil {
		return err
	}
	return writer.Patch(ctx, cm, func(o client.Object) { o.(*corev1.ConfigMap).Data = location.Data() })
}
