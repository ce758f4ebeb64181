package main

import (
	"context"
	"fmt"
	"os"

	"github.com/slipwayhq/slipway/test/bench/result"
)

// measureUp starts management clusters on bare data directories, and again on the same.
func (b *bench) measureUp(ctx context.Context) error {
	var first, again []float64
	for n := range b.runs {
		b.say("starting a management cluster, %d of %d …", n+1, b.runs)
		err := b.with(ctx, func(in *installation) error {
			took, err := in.up(ctx)
			if err != nil {
				return err
			}
			first = append(first, took.Seconds())
			if err := in.down(ctx); err != nil {
				return err
			}
			if took, err = in.up(ctx); err != nil {
				return fmt.Errorf("the second time: %w", err)
			}
			again = append(again, took.Seconds())
			return nil
		})
		if err != nil {
			return err
		}
	}
	binary, err := os.Stat(b.binary)
	if err != nil {
		return err
	}
	b.found(
		result.Figure{Name: "up.first", Title: "up -d until ready, on a bare data directory", Unit: result.Seconds}.Median(first).AtMost(6),
		result.Figure{Name: "up.again", Title: "up -d until ready, on the same again", Unit: result.Seconds}.Median(again).AtMost(4),
		result.Figure{Name: "up.binary", Title: "size of the binary", Unit: result.Megabytes, Value: float64(binary.Size()) / 1e6},
	)
	return nil
}
