package testkit

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// WithIndexes adds the indexes to a fake client that the function adds to the cache of a manager.
func WithIndexes(b *fake.ClientBuilder, add func(client.FieldIndexer) error) *fake.ClientBuilder {
	if err := add(fakeIndexer{b}); err != nil {
		panic(err)
	}
	return b
}

// fakeIndexer adds indexes to a fake client.
type fakeIndexer struct{ builder *fake.ClientBuilder }

func (i fakeIndexer) IndexField(_ context.Context, o client.Object, field string, values client.IndexerFunc) error {
	i.builder.WithIndex(o, field, values)
	return nil
}
