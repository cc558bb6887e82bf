//! End-to-end tests of the command line: its details, real programs, the cases by kind, then the acceptance
//! rows by area.

mod support;

mod bind;
mod command_line;
mod foreground;
mod words;
mod hooks;
mod setup;
mod real_programs;
mod watchers;
mod terminals;

mod kills;

mod mcp_sessions;
mod mcp_tasks;
mod mcp_tools;
mod mcp_wire;

mod cases_delivery;
mod cases_handles;
mod cases_hang;
mod cases_limits;
mod cases_mcp;
mod cases_output;
mod cases_stdin;
mod cases_survivors;
mod cases_truth;

mod area_a;
mod area_b;
mod area_c;
mod area_d;
mod area_e;
mod area_f;
mod area_g;
mod area_h;
mod area_i;
mod area_j;
mod area_k;
mod area_l;
mod area_m;
mod area_n;
mod area_o;
mod area_p;
mod area_q;
mod area_r;
mod area_r_starts;
mod area_t;
