package jar_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/jar"
)

// A Go function becomes a tool, and a script calls it in a loop and prints only what
// matters.
func Example() {
	ctx := context.Background()
	state, err := os.MkdirTemp("", "belljar-example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(state)

	type city struct {
		Name string `json:"name" jsonschema:"name of a city"`
	}
	people := map[string]int{"Oslo": 717_710, "Bergen": 291_940, "Tromsø": 78_745}
	population := func(_ context.Context, c city) (int, error) {
		n, ok := people[c.Name]
		if !ok {
			return 0, fmt.Errorf("no city %q", c.Name)
		}
		return n, nil
	}

	j, err := jar.Open(ctx, jar.WithState(state), jar.WithFunc("population", "How many people live in a city.", population))
	if err != nil {
		log.Fatal(err)
	}
	defer j.Close()

	res, err := j.Run(ctx, &belljar.Request{Source: `
total = 0
for name in ["Oslo", "Bergen", "Tromsø", "Atlantis"]:
    try:
        total += tools.population(name=name)
    except RuntimeError as e:
        print("left out:", e)
print("together:", total)
`})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(res.Stdout)
	fmt.Println(res.Status, res.ToolCalls.Count)
	// Output:
	// left out: no city "Atlantis"
	// together: 1088395
	// exited 4
}
