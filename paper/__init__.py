"""The paper again: every table and every figure, beside what it printed.

``make paper`` makes them. `numbers` is what the paper printed; `settings` the detectors it compared;
`synthetic`, `public` and `electricity` the experiments, `work` and `store` their runs, shared out and kept; `power` and
`single` what its first figures show; `tables`, `figures` and `page` what people see; `catalogue` all of it by name.
"""
