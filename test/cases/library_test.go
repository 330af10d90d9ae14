package cases

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/belljar/belljar"
)

// surface is a way to run one program.
type surface interface {
	run(ctx context.Context, p *program) (*reply, error)
}

// library plays through package jar.
type library struct{ b *bench }

func (s library) run(ctx context.Context, p *program) (*reply, error) {
	begin := time.Now()
	res, err := s.b.jar.Run(ctx, p.request(belljar.KindSnippet))
	if err != nil {
		return nil, err
	}
	took := time.Since(begin)
	text, err := json.Marshal(res)
	if err != nil {
		return nil, fmt.Errorf("the result is no JSON: %w", err)
	}
	return &reply{res: res, texts: []string{string(text), res.Stdout, res.Stderr}, took: took}, nil
}
